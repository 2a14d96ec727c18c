"""A job that must run once ran twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from itertools import pairwise

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.evidence.blame import Attribution
from lockcheck.checker.evidence.guard import effect_of
from lockcheck.checker.evidence.rivals import exclude
from lockcheck.checker.evidence.writes import canonical
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Reason, Rule
from lockcheck.history import F, Hold, Operation, Terms

Run = tuple[Operation, Hold | None]
# The holds, earlier first; who is to blame; and why it was no failure of the lock, if it was none.
Judged = tuple[tuple[Hold, ...], Blame, tuple[Reason, ...]]


def find(case: Case) -> Iterator[Finding]:
    runs: defaultdict[tuple[str, Hashable], list[Operation]] = defaultdict(list)
    for operation in case.operations:
        if operation.f == F.RUN and operation.ok and operation.invoke.value is not None:
            runs[operation.key, canonical(operation.invoke.value)].append(operation)
    again = [same for same in runs.values() if len(same) > 1]
    if not again:
        return
    index = case.index
    for same in again:
        for before, after in pairwise(same):
            pair = (before, index.of(before)), (after, index.of(after))
            judged = _blame(case.terms, case.attribution, *pair)
            yield _finding(case.terms, judged, before, after)


def _finding(terms: Terms, judged: Judged, before: Operation, after: Operation) -> Finding:
    holds, blame, reasons = judged
    return Finding(
        code=Code.DOUBLE_RUN,
        key=after.key,
        time_ns=after.start_ns if after.end_ns is None else after.end_ns,
        effect=effect_of(terms, Code.DOUBLE_RUN, blame),
        holds=holds,
        operations=(before, after),
        length_ns=max(0, after.start_ns - (before.end_ns or before.start_ns)),
        blame=blame,
        reasons=reasons,
    )


def _blame(terms: Terms, attribution: Attribution, first: Run, second: Run) -> Judged:
    (before, one), (after, other) = first, second
    if one is None or other is None:
        holds = tuple(hold for hold in (one, other) if hold is not None)
        return holds, Blame(Culprit.CLIENT, 0, None), (Reason(Rule.RAN_WITHOUT_LOCK),)
    if one is other:
        return (one,), Blame(Culprit.CLIENT, 0, None), (Reason(Rule.RAN_AGAIN),)
    earlier, later = attribution.in_order(one, other)
    promised_ns = attribution.promised_until_ns(earlier, later)
    run = before if earlier is one else after
    if one.process == other.process:
        reason = Reason(Rule.RAN_ON_ONE_CLIENT)
    elif not exclude(terms, one, other):
        reason = Reason(Rule.NOT_EXCLUSIVE)
    elif run.end_ns is not None and run.end_ns < later.start_ns:
        reason = Reason(Rule.DONE_BEFORE, number=run.end_ns)
    else:
        return (earlier, later), attribution.blame(earlier, later, run), ()
    return (earlier, later), Blame(Culprit.CLIENT, 0, promised_ns), (reason,)


CHECK = Check(
    code=Code.DOUBLE_RUN,
    meaning="a job that must run once ran twice",
    explanation="""\
A lock is often used so that a job runs once: send the invoice, move the money. Jobs have names, and
here one of the same name was done twice (both times the client was told so; a run of which nobody
knows whether it happened does not count).

Where two holders ran it although the lock should have kept them apart, they are to blame who would
be for an overlap: the lock server, if it let the second one in too early, or the first holder, if
it outlived its lease. Where the first run was over before the second holder was granted the lock,
or one client ran it twice, or there was no lock, the lock did its work: what is missing is the mark
that the job is done, looked at under the lock.

No guard at a storage makes up for it. The cure is to make the job harmless when it is repeated, or
to have whoever receives it look at the fencing token.""",
    find=find,
)
