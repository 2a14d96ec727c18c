"""How much happened in a run, which shows what an `ok` is worth."""

from __future__ import annotations

from lockcheck.checker.case import Case
from lockcheck.checker.evidence.versions import Versions
from lockcheck.checker.evidence.writes import GUARDS_WORDS, Ledger
from lockcheck.checker.finding import Counts
from lockcheck.checker.judges.stale_write import Newest, supersedable
from lockcheck.history import F


def count(case: Case) -> Counts:
    history, ledger = case.history, case.ledger
    versions, seen = case.versions, case.together
    return Counts(
        operations=len(history.operations),
        acquisitions=len(history.holds),
        holders=len({hold.node for hold in history.holds}),
        faults=sum(1 for fault in history.faults if fault.proven_ns is not None),
        writes_accepted=sum(1 for write in ledger.writes if write.accepted),
        writes_refused=len(ledger.refused),
        stale_writes_refused=_stale_refused(ledger),
        jobs_run=sum(1 for o in history.operations if o.f == F.RUN and o.ok),
        updates_acknowledged=sum(w.acknowledged for each in versions for w in each.writes),
        updates_lost=sum(map(lost, versions)),
        held_together=seen.held,
        shared_together=seen.shared,
        entered_deepest=seen.entered,
    )


def lost(versions: Versions) -> int:
    """The number of lost updates; one that was overwritten several times counts once."""
    acknowledged = (i for i, write in enumerate(versions.writes) if write.acknowledged)
    return sum(i not in versions.final_ancestors for i in acknowledged)


def _stale_refused(ledger: Ledger) -> int:
    """The writes that the guard refused, or that came after an accepted one of a later holder."""
    newest: dict[str, Newest] = {}
    stale = 0
    for write in ledger.writes:
        seen = newest.setdefault(write.key, Newest())
        taken = supersedable(write)
        if write.accepted and taken is not None:
            seen.add(taken)
        elif not write.accepted:
            superseded = taken is not None and seen.superseding(taken.hold) is not None
            stale += write.reason.startswith(GUARDS_WORDS) or superseded
    return stale
