"""How much a run did: so that `ok` can say what it is worth."""

from __future__ import annotations

from lockcheck.checker.finding import Counts
from lockcheck.checker.stale_write import Newest, supersedable
from lockcheck.checker.writes import GUARDS_WORDS, Ledger, StoredWrite, read_ledger
from lockcheck.history import History


def count(history: History) -> Counts:
    ledger = read_ledger(history)
    return Counts(
        operations=len(history.operations),
        acquisitions=len(history.holds),
        holders=len({hold.node for hold in history.holds}),
        faults=sum(1 for fault in history.faults if fault.proven_ns is not None),
        writes_accepted=sum(1 for write in ledger.writes if write.accepted),
        writes_refused=len(ledger.refused),
        stale_writes_refused=_stale_refused(ledger),
    )


def _stale_refused(ledger: Ledger) -> int:
    """Refused by the guard's own words, or after an accepted write of a later holder."""
    newest: dict[str, Newest] = {}
    stale = 0
    for write in ledger.writes:
        seen = newest.setdefault(write.key, Newest())
        taken = supersedable(write)
        if write.accepted and taken is not None:
            seen.add(taken)
        elif not write.accepted:
            stale += _by_guard(write) or (
                taken is not None and seen.superseding(taken.hold) is not None
            )
    return stale


def _by_guard(write: StoredWrite) -> bool:
    return write.reason.startswith(GUARDS_WORDS)
