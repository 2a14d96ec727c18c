"""A renewal succeeded after somebody else had held the lock."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.evidence.blame import Attribution
from lockcheck.checker.evidence.guard import effect_of
from lockcheck.checker.evidence.rivals import rivals_of
from lockcheck.checker.finding import Blame, Code, Culprit, Finding
from lockcheck.history import Hold, Operation, Terms


def find(case: Case) -> Iterator[Finding]:
    if case.terms.permits <= 1:
        yield from (_finding(case.terms, case.attribution, *found) for found in _revived(case))


def _revived(case: Case) -> Iterator[tuple[Hold, Hold, Operation]]:
    for holds in case.holds_by_key.values():
        rivals = rivals_of(case.history, holds)
        for hold in holds:
            granted = [renewal for renewal in hold.renewals if renewal.ok]
            other = next(rivals.after(hold, granted[-1].start_ns), None) if granted else None
            if other is not None:
                renewal = next(r for r in granted if r.start_ns > other.start_ns)
                if not case.reentries.between(hold, other.start_ns, renewal.start_ns):
                    yield hold, other, renewal


def _finding(
    terms: Terms, attribution: Attribution, hold: Hold, other: Hold, renewal: Operation
) -> Finding:
    late_ns = renewal.start_ns - other.start_ns
    promised_ns = attribution.promised_until_ns(hold, other)
    renewed_ns = renewal.start_ns if renewal.end_ns is None else renewal.end_ns
    fault = attribution.fault_anywhere(hold.acquire.start_ns, renewed_ns)
    blame = Blame(Culprit.SERVICE, late_ns, promised_ns, fault)
    return Finding(
        code=Code.REVIVED,
        key=hold.key,
        time_ns=renewed_ns,
        effect=effect_of(terms, Code.REVIVED, blame),
        holds=(hold, other),
        operations=(renewal,),
        length_ns=late_ns,
        blame=blame,
    )


CHECK = Check(
    code=Code.REVIVED,
    meaning="a renewal succeeded after somebody else had held the lock",
    explanation="""\
A lease ran out, somebody else was granted the lock, and then the first client asked to renew its
lease, and was told that it had been renewed. A renewal must refuse whoever does not hold the lock
any more, even if nobody holds it just then: what the first client knows of the data is out of date,
and its fencing token too.

It is reported where the other client was certainly granted the lock later than the first one (it
asked for it after the first one had it, or tokens tell), and that was answered before the renewal
was invoked, by the client itself or by its keeper. Only the first renewal of each hold that
should have been refused is reported.

The usual cause is a renewal that sets the time to live of whatever lock is there (`PEXPIRE` without
a look at the owner), or that makes the lock anew where it is gone. Whether the other one was let in
rightly is reported by the overlap, if there was one.""",
    find=find,
)
