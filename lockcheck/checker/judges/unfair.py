"""A lock that promises first come, first served let a later request pass an earlier one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import Screen
from lockcheck.checker.evidence.rivals import exclude
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Reason
from lockcheck.checker.wording import Last, Words
from lockcheck.history import Hold
from lockcheck.history.clocks import slack_ns
from lockcheck.history.event import NS_PER_MS
from lockcheck.words import lock_name, plain

QUEUED = "{operations[0].node} had its place {at}, {before} before {operations[1].node} asked."


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A client that had its place in the queue and was granted the lock in the end."""

    hold: Hold
    queued_ns: int  # when its place was last confirmed


def find(case: Case) -> Iterator[Finding]:
    if not (case.terms.fair and case.history.queued):
        return
    queue = _Queue(case)
    for holds in case.holds_by_key.values():
        for waiting, passing in _passed(queue, holds):
            yield _finding(case, waiting, passing)


class _Queue:
    def __init__(self, case: Case) -> None:
        self._terms = case.terms
        self._queued_ns: dict[tuple[int | str, str], list[int]] = {}
        for notice in case.history.queued:
            self._queued_ns.setdefault((notice.process, notice.key or ""), []).append(notice.time)
        self._outages = case.outages

    def waiting(self, holds: list[Hold]) -> list[_Waiting]:
        """By when they had their places."""
        found = []
        for hold in holds:
            queued_ns = self._queued_ns.get((hold.process, hold.key), [])
            position = bisect_right(queued_ns, hold.start_ns)
            if position and queued_ns[position - 1] >= hold.acquire.start_ns:
                found.append(_Waiting(hold, queued_ns[position - 1]))
        return sorted(found, key=lambda waiting: waiting.queued_ns)

    def was_passed(self, waiter: Hold, passing: Hold) -> bool:
        """The other one was granted it first, for certain: what was answered late is no proof."""
        if passing.process == waiter.process or passing.start_ns >= waiter.start_ns:
            return False
        if waiter.token is not None and passing.token is not None:
            return waiter.token > passing.token
        if not exclude(self._terms, waiter, passing):
            return False  # both may have been granted it, in the right order
        lease_ms, asked_ns = waiter.acquire.invoke.ttl_ms or self._terms.ttl_ms, _asked_ns(waiter)
        if lease_ms is None:
            # A client out of touch may have lost its session, or a grant it did not know of yet.
            return not self._outages.out_of_touch({waiter.node}, asked_ns, waiter.start_ns)
        # Had it been granted before, it would have held it now: its lease was still running.
        lease_ns, request_ns = lease_ms * NS_PER_MS, waiter.start_ns - asked_ns
        return passing.start_ns - asked_ns < lease_ns - slack_ns(lease_ns, request_ns, self._terms)


def _asked_ns(hold: Hold) -> int:
    return hold.acquire.start_ns


def _passed(queue: _Queue, holds: list[Hold]) -> Iterator[tuple[_Waiting, Hold]]:
    """Each hold that was asked for later and granted first, with the one that had waited longest of
    those it passed. At any time no more wait than there are clients."""
    arriving = queue.waiting(holds)
    position = 0
    waiting: list[_Waiting] = []
    for hold in sorted(holds, key=_asked_ns):
        asked_ns = _asked_ns(hold)
        while position < len(arriving) and arriving[position].queued_ns < asked_ns:
            waiting.append(arriving[position])
            position += 1
        waiting = [one for one in waiting if one.hold.start_ns > asked_ns]
        passed = next((one for one in waiting if queue.was_passed(one.hold, hold)), None)
        if passed is not None:
            yield passed, hold


def _finding(case: Case, waiting: _Waiting, passing: Hold) -> Finding:
    waiter = waiting.hold
    late_ns = waiter.start_ns - passing.start_ns
    fault = case.attribution.fault_anywhere(waiter.acquire.start_ns, waiter.start_ns)
    blame = Blame(Culprit.SERVICE, late_ns, None, fault)
    return Finding(
        code=Code.UNFAIR,
        key=passing.key,
        time_ns=waiter.start_ns,
        effect=CHECK.effect(case.terms, blame),
        holds=(passing, waiter),
        operations=(waiter.acquire, passing.acquire),
        length_ns=late_ns,
        blame=blame,
        reasons=(Reason(QUEUED, number=waiting.queued_ns),),
    )


def _nodes(finding: Finding) -> tuple[str, str]:
    """The client that waited, then the one that passed it."""
    asked = sorted(finding.operations, key=lambda o: o.start_ns)
    return plain(asked[0].node), plain(asked[-1].node)


def _title(finding: Finding) -> str:
    waiting, passing = _nodes(finding)
    return f"{passing} was granted {lock_name(finding.key)} before {waiting}, which asked earlier"


def _last(finding: Finding) -> Last:
    waiting, passing = _nodes(finding)
    return waiting, f"had asked earlier and was passed by {passing}"


def _did(finding: Finding) -> str:
    key = lock_name(finding.key)
    return f"it promises first come, first served, and granted {key} to a later request"


WORDS = Words(
    one="unfair grant",
    many="unfair grants",
    kept="first come, first served",
    precedence=3,
    title=_title,
    last=_last,
    did=_did,
    cure=(
        "Let the lock server keep the queue and order it by one counter (sequence numbers, "
        "revisions), and let each client wait for the one before it; or do not promise first "
        "come, first served."
    ),
    shows_requests=True,
)
CHECK = Check(
    code=Code.UNFAIR,
    meaning="a lock that promises first come, first served let a later request pass",
    explanation="""\
A fair lock grants in the order in which it was asked. Only a lock that promises so is judged
(`fair` in the terms of the history), and only where the order is certain: a client that waited had
its place confirmed (`queued`), another one asked after that, and was granted the lock while the
first one was still waiting.

An answer may be read late: the first one may have been granted the lock long before. So either the
fencing tokens say that the other one was granted it first, or the first one's lease would still
have been running. A client that was refused in the end, or never answered, may have lost its place,
or given it up, and is not looked at; one whose place was confirmed again counts from then.

Of a lock with several permits only the tokens tell: two that were granted it at once may have been
granted it in either order. Without tokens a fair semaphore is not judged.

A queue that is kept by polling, by watchers that all wake up at once, or in the memory of a server
that restarted, is not fair.""",
    find=find,
    words=WORDS,
    screen=Screen("its lock promises fairness", lambda scan: scan.terms.fair),
    despite_guards=True,
)
