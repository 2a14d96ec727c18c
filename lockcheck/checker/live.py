"""How often two clients certainly held one lock at once, counted while the run goes on.

Never more than the judge of overlaps will find in the same events: an overlap counts once both
clients have been heard of after the later grant while they still held it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import takewhile

from lockcheck.checker.judges.overlap import is_a_moment
from lockcheck.history import Effect, Event, EventType, Notice, Terms
from lockcheck.history.event import NEMESIS, NS_PER_MS
from lockcheck.history.holding import OpenHold
from lockcheck.history.live_holds import LiveHolds

# How far apart the clients' files may be read, and how many holds are kept for that.
APART_NS = 5_000 * NS_PER_MS
MANY = 1_000


class OverlapWatch:
    def __init__(self, terms: Terms) -> None:
        self.overlaps = 0
        self._terms = terms
        self._following = LiveHolds(terms)
        self._open: list[OpenHold] = []
        self._ended: defaultdict[str, list[OpenHold]] = defaultdict(list)  # sorted by their ends
        self._suspected: list[tuple[OpenHold, OpenHold]] = []
        self._crowds: Counter[OpenHold] = Counter()  # the number of holds that each overlapped
        self._newest_ns = 0
        self._ending: dict[int | None, tuple[str, ...]] = {}  # the clients that each fault ends

    def feed(self, event: Event) -> None:
        if event.process == NEMESIS:
            self._fault(event)
            return
        self._newest_ns = max(self._newest_ns, event.time)
        begun = self._following.feed(event)
        self._put_away()
        if begun is not None:
            self._suspect(begun)
            self._open.append(begun)
        self._decide()

    def _fault(self, event: Event) -> None:
        if event.effect is Effect.ENDS and event.fault is not None:
            self._ending[event.fault] = event.struck
        elif event.type is EventType.OK and event.f != Notice.HEAL:
            for node in self._ending.get(event.fault, ()):
                self._following.ended(node, event.time)

    def holders(self) -> dict[str, list[str]]:
        """The nodes that believe that they hold each key, in the order of their grants."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for held in self._following.holders():
            found[held.acquire.key].append(held.acquire.node)
        return dict(found)

    def settle(self, now_ns: int) -> None:
        """All events up to `now_ns` have been fed: holds that were over by then can be forgotten.
        It proves no overlap: a holder may have died after its last event."""
        self._following.settle(now_ns)
        self._put_away()
        self._decide()
        for ended in self._ended.values():
            self._drop(ended, now_ns)

    def _put_away(self) -> None:
        for held in [held for held in self._open if held.closed is not None]:
            self._open.remove(held)
            ended = self._ended[held.acquire.key]
            insort(ended, held, key=_end_ns)
            if len(ended) > MANY:
                self._drop(ended, self._newest_ns - APART_NS)

    def _drop(self, ended: list[OpenHold], until_ns: int) -> None:
        number = bisect_right(ended, until_ns, key=_end_ns)
        for held in ended[:number]:
            self._crowds.pop(held, None)
        del ended[:number]

    def _suspect(self, begun: OpenHold) -> None:
        """Adds the pairs of the new hold and each hold that it may overlap."""
        for other in self._held_after(_start_ns(begun), begun.acquire.key):
            if other.acquire.process != begun.acquire.process and self._exclude(other, begun):
                self._suspected.append((other, begun))

    def _held_after(self, time_ns: int, key: str) -> Iterator[OpenHold]:
        yield from (held for held in self._open if held.acquire.key == key)
        yield from takewhile(lambda held: _end_ns(held) > time_ns, reversed(self._ended[key]))

    def _exclude(self, one: OpenHold, other: OpenHold) -> bool:
        shared = one.acquire.invoke.shared and other.acquire.invoke.shared
        return self._terms.permits > 1 or not shared

    def _decide(self) -> None:
        """Counts the proven overlaps, and keeps the pairs that may still turn out to be some."""
        undecided = []
        for pair in self._suspected:
            later = max(reversed(pair), key=_start_ns)
            over = [h for h in pair if self._following.certain_until_ns(h) <= _start_ns(later)]
            if later in over and self._is_a_moment(later, pair):
                over.remove(later)
            if not over:
                self._count(later)
            elif all(held.closed is None for held in over):
                undecided.append(pair)
        self._suspected = undecided

    def _is_a_moment(self, later: OpenHold, pair: tuple[OpenHold, OpenHold]) -> bool:
        """It was over with its grant: a moment, which may lie within the other one."""
        if later.closed is None or not is_a_moment(later.closed):
            return False
        return min(map(_start_ns, pair)) < _start_ns(later)

    def _count(self, later: OpenHold) -> None:
        """A hold of a semaphore that was one too many counts once."""
        self._crowds[later] += 1
        self.overlaps += self._terms.permits <= 1 or self._crowds[later] == self._terms.permits


def _start_ns(held: OpenHold) -> int:
    return held.acquire.end_ns or 0


def _end_ns(held: OpenHold) -> int:
    return held.closed.end_ns if held.closed is not None else _start_ns(held)
