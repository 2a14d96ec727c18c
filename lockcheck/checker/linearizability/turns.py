"""Puts the pieces of a register in an order one by one: next is any that none of the others has to
come before.

One piece has to come before another if its earliest end is before the other's latest start, or if
some client's own order says so (`own_order`). For the first rule, only the earliest end of all that
are left matters; for the piece whose end that is, the second one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

Link = tuple[int, ...]  # a piece, one that has to come after it, and the operations that show it


def circle_of(ends: list[int], starts: list[int], own: Iterable[Link]) -> list[Link]:
    """Links that form a circle; empty if the pieces have an order. `ends` are the earliest ones,
    `starts` the latest ones."""
    turns = _Turns(ends, starts, own)
    while turns.left:
        if not turns.take_one():
            return turns.circle()
    return []


class _Turns:
    def __init__(self, ends: list[int], starts: list[int], own: Iterable[Link]) -> None:
        pieces = range(len(ends))
        self.left = set(pieces)
        self._ends, self._starts = ends, starts
        self._by_end = sorted(pieces, key=ends.__getitem__)
        self._by_start = sorted(pieces, key=starts.__getitem__, reverse=True)
        self._first, self._second = 0, 1  # places in `_by_end`
        self._ready: list[int] = []
        self._in_time = [False] * len(ends)
        self._links: defaultdict[int, list[Link]] = defaultdict(list)
        self._followers: defaultdict[int, list[int]] = defaultdict(list)
        self._awaited = [0] * len(ends)
        for link in own:
            self._links[link[1]].append(link)
            self._followers[link[0]].append(link[1])
            self._awaited[link[1]] += 1

    def take_one(self) -> bool:
        first, second = self._earliest()
        while self._by_start and self._starts[self._by_start[-1]] <= self._ends[first]:
            self._now_in_time(self._by_start.pop())
        if second is None or self._starts[first] <= self._ends[second]:
            self._now_in_time(first)
        if not self._ready:
            return False
        piece = self._ready.pop()
        self.left.remove(piece)
        for other in self._followers[piece]:
            self._awaited[other] -= 1
            if self._in_time[other] and not self._awaited[other]:
                self._ready.append(other)
        return True

    def _now_in_time(self, piece: int) -> None:
        if not self._in_time[piece] and not self._awaited[piece]:
            self._ready.append(piece)
        self._in_time[piece] = True

    def _earliest(self) -> tuple[int, int | None]:
        """Of those that are left the two that end first."""
        self._first = self._next(self._first)
        self._second = self._next(max(self._second, self._first + 1))
        last = self._second == len(self._by_end)
        return self._by_end[self._first], None if last else self._by_end[self._second]

    def _next(self, place: int) -> int:
        while place < len(self._by_end) and self._by_end[place] not in self.left:
            place += 1
        return place

    def circle(self) -> list[Link]:
        """From one that is left to one that has to come before it, and so on."""
        first, second = self._earliest()
        links: list[Link] = []
        piece, place = first, dict[int, int]()
        while piece not in place:
            place[piece] = len(links)
            own = (link for link in self._links[piece] if link[0] in self.left)
            other = second if piece == first else first
            if other is None or self._ends[other] >= self._starts[piece]:
                links.append(next(own))
            else:
                links.append((other, piece))
            piece = links[-1][0]
        return links[place[piece] :]
