"""A job that must run once ran twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from itertools import pairwise

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import Screen
from lockcheck.checker.evidence.rivals import exclude
from lockcheck.checker.evidence.writes import canonical
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Reason
from lockcheck.checker.wording import NOT_EXCLUSIVE, Words
from lockcheck.history import F, Hold, Operation
from lockcheck.history.table import Op
from lockcheck.words import listed, plain

RAN_WITHOUT_LOCK = "It ran without the lock."
RAN_AGAIN = "One holder ran it twice."
RAN_ON_ONE_CLIENT = "The same client ran it twice."
DONE_BEFORE = "It had been done {at}, before {holds[1].node} was granted the lock."
# The holds, earlier first; who is to blame; and why it was no failure of the lock, if it was none.
Judged = tuple[tuple[Hold, ...], Blame, tuple[Reason, ...]]


def find(case: Case) -> Iterator[Finding]:
    runs: defaultdict[tuple[str, Hashable], list[Operation]] = defaultdict(list)
    for operation in case.operations:
        if operation.f == F.RUN and operation.ok and operation.invoke.value is not None:
            runs[operation.key, canonical(operation.invoke.value)].append(operation)
    for same in runs.values():
        yield from (_finding(case, before, after) for before, after in pairwise(same))


def _finding(case: Case, before: Operation, after: Operation) -> Finding:
    holds, blame, reasons = _blame(case, before, after)
    return Finding(
        code=Code.DOUBLE_RUN,
        key=after.key,
        time_ns=after.start_ns if after.end_ns is None else after.end_ns,
        effect=CHECK.effect(case.terms, blame),
        holds=holds,
        operations=(before, after),
        length_ns=max(0, after.start_ns - (before.end_ns or before.start_ns)),
        blame=blame,
        reasons=reasons,
    )


def _blame(case: Case, before: Operation, after: Operation) -> Judged:
    attribution, one, other = case.attribution, case.index.of(before), case.index.of(after)
    if one is None or other is None:
        holds = tuple(hold for hold in (one, other) if hold is not None)
        return holds, Blame(Culprit.CLIENT), (Reason(RAN_WITHOUT_LOCK),)
    if one is other:
        return (one,), Blame(Culprit.CLIENT), (Reason(RAN_AGAIN),)
    earlier, later = attribution.in_order(one, other)
    promised_ns = attribution.promised_until_ns(earlier, later)
    run = before if earlier is one else after
    if one.process == other.process:
        reason = Reason(RAN_ON_ONE_CLIENT)
    elif not exclude(case.terms, one, other):
        reason = Reason(NOT_EXCLUSIVE)
    elif run.end_ns is not None and run.end_ns < later.start_ns:
        reason = Reason(DONE_BEFORE, number=run.end_ns)
    else:
        return (earlier, later), attribution.blame(earlier, later, run), ()
    return (earlier, later), Blame(Culprit.CLIENT, 0, promised_ns), (reason,)


def _job(finding: Finding) -> str:
    values = (o.invoke.value for o in finding.operations if o.f == F.RUN)
    return f"job {next((plain(value) for value in values if value is not None), 'it')}"


def _title(finding: Finding) -> str:
    runs = [f"on {plain(o.node)}" for o in finding.operations if o.f == F.RUN]
    return f"The {_job(finding)} ran twice: {listed(runs)}"


def _second(finding: Finding) -> str:
    return plain(finding.operations[-1].node)


def _did(finding: Finding) -> str:
    """Of a server there is more to say: how early it let the second holder in."""
    by_server = finding.blame.who is Culprit.SERVICE
    return "" if by_server else f"it ran the {_job(finding)} although that had run already"


WORDS = Words(
    one="double run",
    many="double runs",
    kept="no job run twice",
    precedence=10,
    title=_title,
    last=lambda f: (_second(f), f"the {_job(f)} ran once more"),
    did=_did,
    blamed=lambda f: f"client {_second(f)}",
    cure=(
        "Let the job itself see to it: write down, under the job's name and in the same "
        "transaction as its effect, that it has run, and refuse a second time. A lock with a "
        "lease cannot prevent this alone."
    ),
)
CHECK = Check(
    code=Code.DOUBLE_RUN,
    meaning="a job that must run once ran twice",
    explanation="""\
A lock is often used so that a job runs once: send the invoice, move the money. Jobs have names, and
here one of the same name was done twice (both runs were confirmed to their clients; a run whose
outcome is unknown does not count).

Where two holders ran it although the lock should have kept them apart, the blame is that of an
overlap: the lock server's, if it let the second one in too early, or the first holder's, if it
outlived its lease. Where the first run was over before the second holder was granted the lock, or
one client ran it twice, or there was no lock, the lock did its work: what is missing is the mark
that the job is done, looked at under the lock.

No guard at a storage makes up for it. The cure is to make the job harmless when it is repeated,
or to have its receiver check the fencing token.""",
    find=find,
    words=WORDS,
    screen=Screen("it tells of what was done without the lock", lambda s: Op.RUN in s.table.f),
    despite_guards=True,
    damages_data=True,
)
