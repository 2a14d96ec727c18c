"""A renewal succeeded after another client had held the lock."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import MOST_PLACES, Screen
from lockcheck.checker.evidence.rivals import Rivals
from lockcheck.checker.finding import Blame, Code, Culprit, Finding
from lockcheck.checker.wording import Words, one_to_blame, second_holder
from lockcheck.history import Hold, Operation
from lockcheck.history.ordering import order_by
from lockcheck.history.scan import Scan
from lockcheck.history.table import Ints, Op, Outcome
from lockcheck.words import lock_name


def find(case: Case) -> Iterator[Finding]:
    if case.terms.permits <= 1:
        yield from (_finding(case, *found) for found in _revived(case))


def _revived(case: Case) -> Iterator[tuple[Hold, Hold, Operation]]:
    for holds in case.holds_by_key.values():
        rivals = Rivals(case.history, holds)
        for hold in holds:
            granted = [renewal for renewal in hold.renewals if renewal.ok]
            other = next(rivals.after(hold, granted[-1].start_ns), None) if granted else None
            if other is not None and not _overlapped(case, hold, other):
                renewal = next(r for r in granted if r.start_ns > other.start_ns)
                if not case.reentries.between(hold, other.start_ns, renewal.start_ns):
                    yield hold, other, renewal


def _overlapped(case: Case, hold: Hold, other: Hold) -> bool:
    """The other one was let in while its keeper renewed in time: so it was not to be let in."""
    return hold.end_ns <= other.start_ns and case.attribution.let_in_early(hold, other)


def _finding(case: Case, hold: Hold, other: Hold, renewal: Operation) -> Finding:
    late_ns = renewal.start_ns - other.start_ns
    promised_ns = case.attribution.promised_until_ns(hold, other)
    renewed_ns = renewal.start_ns if renewal.end_ns is None else renewal.end_ns
    fault = case.attribution.fault_anywhere(hold.acquire.start_ns, renewed_ns)
    blame = Blame(Culprit.SERVICE, late_ns, promised_ns, fault)
    return Finding(
        code=Code.REVIVED,
        key=hold.key,
        time_ns=renewed_ns,
        effect=CHECK.effect(case.terms, blame),
        holds=(hold, other),
        operations=(renewal,),
        length_ns=late_ns,
        blame=blame,
    )


def _revived_in_columns(scan: Scan) -> Iterator[Ints]:
    """Renewals that were granted to a client other than the last one that was granted the lock."""
    table = scan.table
    ok = table.outcome == Outcome.OK
    renewals = np.flatnonzero(ok & (table.f == Op.RENEW))
    grants = np.flatnonzero(ok & (table.f == Op.ACQUIRE))
    if len(renewals) == 0 or len(grants) == 0:
        return
    # Each renewal among the grants: the last one of its key that was answered before it was sent.
    both = np.concatenate((grants, renewals))
    time = np.concatenate((table.end[grants], table.start[renewals]))
    is_renewal = np.arange(len(both)) >= len(grants)
    order = order_by(table.key[both], time, (~is_renewal).astype(np.int8))
    both, is_renewal = both[order], is_renewal[order]
    last = np.maximum.accumulate(np.where(is_renewal, -1, np.arange(len(both))))
    at = np.flatnonzero(is_renewal & (last >= 0))
    grant, renewal = both[last[at]], both[at]
    others = (table.key[grant] == table.key[renewal]) & (
        table.process[grant] != table.owner[renewal]
    )
    first = (rows[others][:MOST_PLACES].tolist() for rows in (grant, renewal))
    for one, other in zip(*first, strict=True):
        own = (table.process[:other] == table.owner[other]) & (table.f[:other] == Op.ACQUIRE)
        yield np.append(np.flatnonzero(own)[-1:], (one, other))


def _title(finding: Finding) -> str:
    who, other = one_to_blame(finding), second_holder(finding)
    return f"{who} renewed its lease on {lock_name(finding.key)} after {other} had held it"


def _did(finding: Finding) -> str:
    who, other, key = one_to_blame(finding), second_holder(finding), lock_name(finding.key)
    return f"it renewed the lease of {who} although {other} had held {key} meanwhile"


def _note(finding: Finding) -> Iterator[str]:
    (hold, other), [renewal] = finding.holds, finding.operations
    if other.end_ns > (renewal.end_ns or renewal.start_ns):
        yield f"{other.node} still held it then."
    else:
        yield f"{other.node} had let go by then; {hold.node} was never granted it again."


WORDS = Words(
    one="revived lease",
    many="revived leases",
    kept="what has ended stays ended",
    precedence=7,
    title=_title,
    last=lambda f: (
        one_to_blame(f),
        f"its renewal was granted, and {second_holder(f)} had held the lock",
    ),
    did=_did,
    cure=(
        "Renew only what is still one's own: compare the owner and extend in one atomic step, "
        "and refuse a renewal of a lease that has ended, so that the client learns that it "
        "lost the lock.{guard}"
    ),
    note=_note,
)
CHECK = Check(
    code=Code.REVIVED,
    meaning="a renewal succeeded after another client had held the lock",
    explanation="""\
A lease ran out, another client was granted the lock, and then the first one asked to renew its
lease, and that was granted. A renewal must refuse a client that does not hold the lock any more,
even if it is free just then: what the first client knows of the data is out of date, and its
fencing token too.

It is reported where the other client was certainly granted the lock later than the first one (it
asked for it after the first one had it, or tokens tell), and that was answered before the renewal
was invoked, by the client itself or by its keeper. Only the first renewal of each hold that
should have been refused is reported.

Where only a keeper renewed, and in time, the mistake is that the other one was let in: see overlap.

The usual cause is a renewal that sets the time to live of whatever lock is there (`PEXPIRE` without
a look at the owner), or that makes the lock anew where it is gone. Whether the other one was let in
rightly is reported by the overlap, if there was one.""",
    find=find,
    words=WORDS,
    screen=Screen(places=_revived_in_columns),
    endangers_data=True,
)
