"""Clients wait for each other in a circle."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import inf

import numpy as np

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import Screen
from lockcheck.checker.evidence.stalls import total_ns
from lockcheck.checker.finding import Blame, Code, Culprit, Finding
from lockcheck.checker.wording import NAMED_AT_MOST, Words, everybody
from lockcheck.history import Ending, F, History, Hold, Operation
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.ordering import BEFORE_ALL, latest_before, order_by
from lockcheck.history.scan import Scan
from lockcheck.history.table import Op
from lockcheck.words import at, exactly, names, span

# Short attempts that are refused and repeated are no waiting: such a client can give up any time.
SHORTEST_NS = 1_000 * NS_PER_MS


@dataclass(frozen=True, slots=True)
class _Wait:
    """A client asks for one lock while it holds others."""

    acquire: Operation
    end_ns: int
    holding: dict[str, Hold]


@dataclass(frozen=True, slots=True)
class _Link:
    """One link of a circle: a client that waits, and its hold that the one before it waits for."""

    wait: _Wait
    hold: Hold
    gone_ns: float  # when another client was granted what it held, or its lease was over

    @property
    def end_ns(self) -> int:
        """A client that waits does nothing else: what it held when it asked, it holds until it is
        answered, unless it learned of a loss, or its lease ran out."""
        kept = self.hold.ending is Ending.LAST_SEEN
        ends_ns = self.wait.end_ns if kept else min(self.wait.end_ns, self.hold.end_ns)
        return int(min(ends_ns, self.gone_ns))


def find(case: Case) -> Iterator[Finding]:
    history = case.history
    if case.terms.permits > 1 or len(case.holds_by_key) < 2:
        return
    active: dict[int | str, _Wait] = {}
    for wait in _waits(history):
        active[wait.acquire.process] = wait
        circle = _circle(case, wait, active)
        if circle and _lasts(case, circle):
            yield _finding(case, circle)


def _waits(history: History) -> Iterator[_Wait]:
    """In the order in which they began: those of clients that hold something, and long enough."""
    holding = _Holding(history.holds)
    for operation in history.operations:
        if operation.f == F.ACQUIRE:
            end_ns = _waited_until_ns(history, operation)
            if end_ns - operation.start_ns >= SHORTEST_NS:
                others = holding.of(operation)
                if others:
                    yield _Wait(operation, end_ns, others)


class _Holding:
    """What a process holds while it asks for something else. To be asked in the order of time."""

    def __init__(self, holds: Iterable[Hold]) -> None:
        self._to_come: defaultdict[int | str, deque[Hold]] = defaultdict(deque)
        self._now: defaultdict[int | str, dict[str, Hold]] = defaultdict(dict)
        for hold in holds:  # in the order of their starts
            self._to_come[hold.process].append(hold)

    def of(self, acquire: Operation) -> dict[str, Hold]:
        now, to_come = self._now[acquire.process], self._to_come[acquire.process]
        while to_come and to_come[0].start_ns <= acquire.start_ns:
            hold = to_come.popleft()
            now[hold.key] = hold
        for key in [key for key, hold in now.items() if not _held_at(hold, acquire.start_ns)]:
            del now[key]
        return {key: hold for key, hold in now.items() if key != acquire.key}


def _held_at(hold: Hold, asked_ns: int) -> bool:
    """Its owner's last sign of life may be that it asked for the other one."""
    if hold.ending is Ending.LAST_SEEN:
        return hold.end_ns >= asked_ns
    return hold.end_ns > asked_ns


def _waited_until_ns(history: History, acquire: Operation) -> int:
    """A client without an answer waits until the history ends, unless a fault hit its node."""
    if acquire.answer is not None:
        return acquire.answer.time
    end_ns = history.end_ns
    node, asked_ns = acquire.node, acquire.start_ns
    struck = any(fault.may_have_stopped(node, asked_ns, end_ns) for fault in history.faults)
    return asked_ns if struck else end_ns


def _circle(case: Case, last: _Wait, active: dict[int | str, _Wait]) -> tuple[_Link, ...]:
    """From the wait that began last along who holds what is waited for, back to it.

    A step leads to the holders of one lock. A wait that was passed once leads nowhere new.
    """
    now_ns = last.acquire.start_ns
    for process in [process for process, wait in active.items() if wait.end_ns <= now_ns]:
        del active[process]
    links: list[_Link] = []
    choices, seen = [_holders(case, last, active)], {id(last)}
    while choices:
        if not choices[-1]:
            choices.pop()
            del links[-1:]
            continue
        link = choices[-1].pop()
        if link.wait is last:
            return (*links, link)
        if id(link.wait) not in seen:
            seen.add(id(link.wait))
            links.append(link)
            choices.append(_holders(case, link.wait, active))
    return ()


def _holders(case: Case, wait: _Wait, active: dict[int | str, _Wait]) -> list[_Link]:
    """The holders of what is waited for that wait as well."""
    key, shared = wait.acquire.key, wait.acquire.invoke.shared
    others = ((other, other.holding[key]) for other in active.values() if key in other.holding)
    return [
        _Link(other, hold, _gone_ns(case, hold))
        for other, hold in others
        if not (shared and hold.shared)
    ]


def _gone_ns(case: Case, hold: Hold) -> float:
    """When another client was granted what this one held, so that it held it no longer. In a
    production log a client without an answer may have died, and its lock with its lease."""
    lapses_ns = None if hold.renewals else hold.promised_until_ns(case.terms.ttl_ms)
    if case.terms.partial and not case.terms.session and lapses_ns is not None:
        return lapses_ns
    holds = case.holds_by_key[hold.key]
    first = bisect_right(holds, hold.start_ns, key=lambda other: other.start_ns)
    later = (
        h.start_ns
        for h in islice(holds, first, None)
        if h.process != hold.process and not (h.shared and hold.shared)
    )
    return next(later, inf)


def _lasts(case: Case, circle: tuple[_Link, ...]) -> bool:
    """Long enough, without the times in which one of the clients was stopped or out of touch."""
    leases_ms = (link.hold.acquire.invoke.ttl_ms or case.terms.ttl_ms or 0 for link in circle)
    since_ns, until_ns = _span(circle)
    nodes = {link.hold.node for link in circle}
    hung = case.outages.out_of_touch(nodes, since_ns, until_ns)
    needed_ns = max(SHORTEST_NS, max(leases_ms) * NS_PER_MS)
    return until_ns - since_ns - total_ns(hung) >= needed_ns


def _span(circle: tuple[_Link, ...]) -> tuple[int, int]:
    """While all of them waited, and held what the others waited for."""
    return max(link.wait.acquire.start_ns for link in circle), min(link.end_ns for link in circle)


def _finding(case: Case, circle: tuple[_Link, ...]) -> Finding:
    since_ns, until_ns = _span(circle)
    in_order = sorted(circle, key=lambda link: link.wait.acquire.start_ns)
    blame = Blame(Culprit.CLIENT)
    return Finding(
        code=Code.DEADLOCK,
        key=in_order[-1].wait.acquire.key,
        time_ns=since_ns,
        effect=CHECK.effect(case.terms, blame),
        holds=tuple(link.hold for link in in_order),
        operations=tuple(link.wait.acquire for link in in_order),
        length_ns=until_ns - since_ns,
        blame=blame,
    )


def _wait_while_holding(scan: Scan) -> bool:
    """Two clients waited for a lock while they held another one: fewer are no circle."""
    table, holds = scan.table, scan.holds
    acquires = table.f == Op.ACQUIRE
    asks = np.flatnonzero(acquires & (table.end - table.start >= SHORTEST_NS))
    if len(np.unique(table.process[asks])) < 2 or len(np.unique(table.key[acquires])) < 2:
        return False
    # What the next attempt, or the release, ends is over by then; else it may be held until then.
    until = np.where(holds.ended < 0, holds.end, holds.end - 1)
    process = np.concatenate((table.process[holds.granted], table.process[asks]))
    since = np.concatenate((holds.start, table.start[asks]))
    until = np.concatenate((until, np.full(len(asks), BEFORE_ALL)))
    order = order_by(process, since)
    held_until = np.empty(len(order), np.int64)
    held_until[order] = latest_before(process[order], until[order])
    holding = asks[held_until[len(holds.granted) :] >= table.start[asks]]
    return len(np.unique(table.process[holding])) >= 2


def _title(finding: Finding) -> str:
    nodes = dict.fromkeys(o.node for o in finding.operations)
    circle = "" if len(nodes) == 2 else " in a circle"
    return f"{names(nodes, NAMED_AT_MOST)} wait for each other{circle}: nobody can go on"


def _in_full(finding: Finding) -> Iterator[str]:
    for hold, acquire in zip(finding.holds, finding.operations, strict=True):
        answer = acquire.answer
        until = f"was answered {at(answer.time)}" if answer else "was never answered"
        yield (
            f"{acquire.node} held {hold.key!r} since {exactly(hold.start_ns)} and asked for"
            f" {acquire.key!r} {at(acquire.start_ns)}, and {until}."
        )


WORDS = Words(
    one="deadlock",
    many="deadlocks",
    kept="no deadlock",
    precedence=5,
    title=_title,
    last=lambda _: ("clients", "from here on each waits for the next one in the circle"),
    did=lambda _: "each of them holds one lock and waits for another",
    blamed=lambda f: f"clients {everybody(f)}",
    cure=(
        "Take locks in one order, the same everywhere (by their names, say); or ask for a "
        "further one only with a time limit, and give back what is held when it strikes."
    ),
    note=lambda f: (f"They all waited for {span(f.length_ns)}.",),
    in_full=_in_full,
)
CHECK = Check(
    code=Code.DEADLOCK,
    meaning="clients wait for each other in a circle",
    explanation="""\
One client holds a lock and waits for a second one, whose holder waits for the first one; or more
of them, in a circle. None can go on until one gives up, or loses its lock.

It is reported where each of them certainly held what the one before it waited for, and all of them
had an `acquire` under way at the same time, for at least a second and at least as long as the
longest of their leases. Short attempts that are refused and repeated are no waiting. A client that
was never answered counts as waiting until the end of the history, unless a fault stopped or ended
its node. Time in which one of them stood still, or may have been cut off, is not counted.

The lock is not at fault: the clients are, who take their locks in different orders. The cure is
one order for all, an `acquire` with a time limit that gives back what it holds, or one lock for
both.""",
    find=find,
    words=WORDS,
    screen=Screen("clients waited for a lock while holding another one", _wait_while_holding),
    despite_guards=True,
)
