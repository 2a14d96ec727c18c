"""Who holds what while a run goes on, and how often two certainly did.

Counts what the judge of overlaps will find in the same events, and never more: an overlap counts
once both clients are known to have held on beyond the later grant, that is when each of them has
been heard of after it while still holding. So it doesn't matter in which order the clients' files
are read, as long as each of them is read in its own order.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from operator import attrgetter

from lockcheck.history import Effect, Event, EventType, F, Notice, Operation, Terms
from lockcheck.history.event import NEMESIS, NS_PER_MS, STORAGE
from lockcheck.history.model import validity_end_ns

# How far apart the clients' files may be read, and how many holds are kept for that.
APART_NS = 5_000 * NS_PER_MS
MANY = 1_000
BEFORE_ALL_NS, AFTER_ALL_NS = -(1 << 61), 1 << 61
NOT_OF_THE_CLIENT_ITSELF = frozenset({Notice.STALL, Notice.CLOCK_STEP, Notice.CLOCKS, Notice.TERMS})
ASKED_OR_GRANTED = (EventType.INVOKE, EventType.OK)


@dataclass(slots=True, eq=False)
class _Live:
    key: str
    process: int | str
    node: str
    start_ns: int
    known_ns: int  # up to here it certainly held
    valid_until_ns: int | None
    shared: bool = False
    entered: int = 1  # how many grants have not been released: a reentrant lock's can be many
    crowd: int = 0  # how many certainly held it when this one was let in
    over: bool = False

    def heard_of(self, time_ns: int) -> None:
        valid = self.valid_until_ns
        self.known_ns = time_ns if valid is None else min(time_ns, valid)


class OverlapWatch:
    def __init__(self, terms: Terms | None = None) -> None:
        """`terms`: those of the run; without them clients are taken not to check their validity."""
        self.overlaps = 0
        self._terms = terms or Terms()
        # By what was asked, too: a keeper can be logged under the name of its client.
        self._pending: dict[tuple[int | str, str], Event] = {}
        self._holding: dict[tuple[int | str, str], _Live] = {}
        self._ended: defaultdict[str, list[_Live]] = defaultdict(list)  # by when they ended
        self._suspected: list[tuple[_Live, _Live]] = []
        self._newest_ns = 0
        self._ending: dict[int | None, tuple[str, ...]] = {}  # by its number: whom a fault ends
        self._ended_ns: dict[str, int] = {}  # when each node was ended for the last time

    def feed(self, event: Event) -> None:
        if event.process == NEMESIS:
            self._fault(event)
        if event.process in (NEMESIS, STORAGE) or event.f in NOT_OF_THE_CLIENT_ITSELF:
            return
        self._newest_ns = max(self._newest_ns, event.time)
        held = [live for (process, _), live in self._holding.items() if process == event.process]
        for live in held:
            if not self._asks_again(event, live):
                live.heard_of(event.time)
        self._change(event)
        if held:
            self._settle_suspicions()

    def holders(self) -> dict[str, list[tuple[str, int | str]]]:
        """Key -> the (node, process) of each who believes that it holds it, by time of grant.

        Whoever was ended since it was heard of last believes nothing any more."""
        found: defaultdict[str, list[tuple[str, int | str]]] = defaultdict(list)
        for live in sorted(self._holding.values(), key=lambda live: live.start_ns):
            if not self._died_by(live, AFTER_ALL_NS):
                found[live.key].append((live.node, live.process))
        return dict(found)

    def _fault(self, event: Event) -> None:
        if event.effect is Effect.ENDS and event.fault is not None:
            self._ending[event.fault] = event.struck
        elif event.type is EventType.OK and event.f != Notice.HEAL:
            for node in self._ending.get(event.fault, ()):
                self._ended_ns[node] = event.time

    def settle(self, now_ns: int) -> None:
        """All events up to `now_ns` have been fed: what was over by then can be forgotten.

        It proves no overlap: a holder that nobody has heard of since may have died. One that a
        fault has ended by then is dropped: with each life of a client there would be one more.
        """
        dead = [live for live in self._holding.values() if self._died_by(live, now_ns)]
        for live in dead:
            self._end(live.process, live.key)
        self._settle_suspicions()
        for ended in self._ended.values():
            del ended[: bisect_right(ended, now_ns, key=attrgetter("known_ns"))]

    def _died_by(self, live: _Live, now_ns: int) -> bool:
        return live.known_ns <= self._ended_ns.get(live.node, BEFORE_ALL_NS) <= now_ns

    def _asks_again(self, event: Event, live: _Live) -> bool:
        """It asks for what it holds, or is granted it: then it had given up, nobody knows when."""
        asks = event.f == F.ACQUIRE and (event.key or "") == live.key
        return asks and event.type in ASKED_OR_GRANTED and not self._terms.reentrant

    def _change(self, event: Event) -> None:
        if event.type is EventType.INVOKE:
            self._pending[event.process, event.f] = event
            if event.f == F.RELEASE:
                self._leave(event.process, event.key or "")
            elif event.f == F.ACQUIRE and not self._terms.reentrant:
                self._end(event.process, event.key or "")
        elif event.f == Notice.LOST and event.type is EventType.INFO:
            self._end(event.process, event.key or "")
        elif event.f != Notice.QUEUED:
            invoke = self._pending.pop((event.process, event.f), None)
            if invoke is None:
                return
            if event.f == F.RENEW and event.type is not EventType.INFO:
                self._renewed(Operation(invoke, event))
            elif event.type is EventType.OK:
                self._answered(Operation(invoke, event))
            elif event.type is EventType.INFO:
                self._retire(event.process)

    def _answered(self, operation: Operation) -> None:
        if operation.f == F.ACQUIRE:
            self._begin(operation)

    def _renewed(self, renewal: Operation) -> None:
        """By whom ever: it is about the hold that its owner had when it was asked for."""
        live = self._holding.get((renewal.owner, renewal.key))
        told_ns = renewal.end_ns
        if live is None or told_ns is None or renewal.start_ns < live.start_ns:
            return
        if renewal.failed:
            live.known_ns = min(live.known_ns, told_ns)
            self._end(renewal.owner, renewal.key)
            return
        until_ns = self._valid_until_ns(renewal)
        if until_ns and live.valid_until_ns and told_ns <= live.valid_until_ns:
            live.valid_until_ns = until_ns

    def _valid_until_ns(self, operation: Operation) -> int | None:
        if not self._terms.honours_validity:
            return None
        return validity_end_ns(operation, self._terms)

    def _begin(self, acquire: Operation) -> None:
        before = self._holding.get((acquire.process, acquire.key))
        if before is not None and self._terms.reentrant:
            before.entered += 1
            return
        self._end(acquire.process, acquire.key)
        granted_ns = acquire.end_ns or 0
        live = _Live(
            acquire.key,
            acquire.process,
            acquire.node,
            granted_ns,
            granted_ns,
            self._valid_until_ns(acquire),
            acquire.invoke.shared,
        )
        for other in self._still_held_after(granted_ns, live.key):
            if other.process != live.process and self._exclude(other, live):
                self._suspected.append((other, live))
        self._holding[live.process, live.key] = live

    def _still_held_after(self, time_ns: int, key: str) -> Iterator[_Live]:
        yield from (live for live in self._holding.values() if live.key == key)
        yield from takewhile(lambda live: live.known_ns > time_ns, reversed(self._ended[key]))

    def _exclude(self, one: _Live, other: _Live) -> bool:
        return self._terms.permits > 1 or not (one.shared and other.shared)

    def _retire(self, process: int | str) -> None:
        """Nobody knows what its last operation did, so it does nothing more."""
        for holder, key in [held for held in self._holding if held[0] == process]:
            self._end(holder, key)

    def _leave(self, process: int | str, key: str) -> None:
        live = self._holding.get((process, key))
        if live is not None and live.entered > 1:
            live.entered -= 1
        else:
            self._end(process, key)

    def _end(self, process: int | str, key: str) -> None:
        live = self._holding.pop((process, key), None)
        if live is not None:
            live.over = True
            ended = self._ended[key]
            insort(ended, live, key=attrgetter("known_ns"))
            if len(ended) > MANY:
                self.settle(self._newest_ns - APART_NS)

    def _settle_suspicions(self) -> None:
        """Keeps those that nothing has proven yet and that may still be."""
        open_ones = []
        for one, other in self._suspected:
            if max(one.start_ns, other.start_ns) < min(one.known_ns, other.known_ns):
                self._count(one, other)
            elif not _decided(one, other):
                open_ones.append((one, other))
        self._suspected = open_ones

    def _count(self, fed_first: _Live, fed_last: _Live) -> None:
        """Of a semaphore each that was one too many counts once."""
        later = fed_first if fed_first.start_ns > fed_last.start_ns else fed_last
        later.crowd += 1
        self.overlaps += self._terms.permits <= 1 or later.crowd == self._terms.permits


def _decided(one: _Live, other: _Live) -> bool:
    """No overlap any more: one of them was over when the other one was granted it."""
    later_ns = max(one.start_ns, other.start_ns)
    return any(live.over and live.known_ns <= later_ns for live in (one, other))
