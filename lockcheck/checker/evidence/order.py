"""Which of two holds came first, and which hold an operation belongs to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from math import inf
from typing import Generic, TypeVar

from lockcheck.history import Hold, Operation

T = TypeVar("T")
Keyed = TypeVar("Keyed", Hold, Operation)


def granted_before(first: Hold, second: Hold) -> bool:
    """Certain by time alone: the first grant was answered before the second acquire was sent."""
    return first.start_ns < second.acquire.start_ns


def concurrent(one: Hold, other: Hold) -> bool:
    """The acquires were under way at once, so time alone does not order the grants."""
    return not granted_before(one, other) and not granted_before(other, one)


def certainly_earlier(first: Hold, second: Hold) -> bool:
    """By time, or by the tokens if the acquires were under way at once: a token that went backwards
    is the service's error and makes no holder stale."""
    if granted_before(first, second) or granted_before(second, first):
        return granted_before(first, second)
    return first.token is not None and second.token is not None and first.token < second.token


class HoldIndex:
    """Finds the hold in which, or after which, a process sent an operation."""

    def __init__(self, holds: Iterable[Hold]) -> None:
        self._holds: defaultdict[tuple[int | str, str], list[Hold]] = defaultdict(list)
        for hold in holds:  # a history's holds are in the order of their starts
            self._holds[hold.process, hold.key].append(hold)

    def of(self, operation: Operation) -> Hold | None:
        """The last hold of its owner and key that had begun by then; it may have ended."""
        holds = self._holds.get((operation.owner, operation.key), [])
        position = bisect_right(holds, operation.start_ns, key=lambda hold: hold.start_ns)
        return holds[position - 1] if position else None


def by_key(found: Iterable[Keyed]) -> dict[str, list[Keyed]]:
    groups: dict[str, list[Keyed]] = {}
    for each in found:
        groups.setdefault(each.key, []).append(each)
    return groups


class Spans(Generic[T]):
    """Finds the intervals that overlap a given one, among many."""

    def __init__(self, spans: Iterable[tuple[int, int | None, T]]) -> None:
        """The start, end (None: none) and value of each interval."""
        self._spans = sorted(spans, key=lambda span: span[0])
        self._starts = [start for start, _, _ in self._spans]
        ends = [inf if end is None else end for _, end, _ in self._spans]
        self._latest_end_so_far = list(accumulate(ends, max))

    def touching(self, after_ns: int, before_ns: int) -> Iterator[T]:
        """Those that begin before `before_ns` and end after `after_ns`, the latest first."""
        for position in reversed(range(bisect_left(self._starts, before_ns))):
            if self._latest_end_so_far[position] <= after_ns:
                return
            _, end, value = self._spans[position]
            if end is None or end > after_ns:
                yield value
