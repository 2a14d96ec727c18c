"""Offsets of clocks that satisfy difference constraints, of which some leave a choice.

A disjunctive temporal problem: the bounds of all differences are a matrix, closed under addition
(Floyd and Warshall). A bound inside a gap moves to the end of the gap. What remains in the way of
the nearest offsets, a gap or another choice, is tried one way and then the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lockcheck.history.event import NS_PER_MS
from lockcheck.history.ordering import latest_before, order_by
from lockcheck.history.table import Ints

# For each limit that is tried: closures of the bounds, fewer where they are large.
MOST_CLOSURES = 2_000
MOST_WORK = 200_000_000
FAR = 1 << 50  # beyond every offset

Limit: TypeAlias = tuple[
    int, int, int
]  # offset of the first, less that of the second: at most this
Choice: TypeAlias = tuple[Limit, ...]  # one of them has to hold


@dataclass(frozen=True, slots=True)
class Gaps:
    """Ranges without their ends, in which the offset of `one` less that of `other` cannot lie."""

    one: Ints
    other: Ints
    low: Ints
    high: Ints

    @staticmethod
    def of(one: Ints, other: Ints, low: Ints, high: Ints) -> Gaps:
        """Those that overlap as one."""
        turned = one > other
        first, second = np.where(turned, other, one), np.where(turned, one, other)
        low, high = np.where(turned, -high, low), np.where(turned, -low, high)
        order = order_by(first, second, low)
        first, second, low, high = first[order], second[order], low[order], high[order]
        pair = first << 32 | second
        begins = np.flatnonzero(latest_before(pair, high) <= low)
        if not len(begins):
            return Gaps(first, second, low, high)
        return Gaps(first[begins], second[begins], low[begins], np.maximum.reduceat(high, begins))

    @property
    def columns(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self.one, self.other, self.low, self.high

    def and_these(self, more: Gaps) -> Gaps:
        both = zip(self.columns, more.columns, strict=True)
        return Gaps.of(*map(np.concatenate, both))

    def exclude(self, offsets: Ints) -> bool:
        apart = offsets[self.one] - offsets[self.other]
        return bool(((self.low < apart) & (apart < self.high)).any())


def split(choices: Iterable[Choice]) -> tuple[Gaps, list[Choice]]:
    """Those that are gaps, and the others."""
    found, others = [], []
    for choice in choices:
        (one, other, low), *rest = choice
        if [limit[:2] for limit in rest] == [(other, one)]:
            found.append((one, other, low, -rest[0][2]))
        else:
            others.append(choice)
    return Gaps.of(*np.array(found, np.int64).reshape(-1, 4).T), others


@dataclass(slots=True)
class Search:
    gaps: Gaps
    choices: Sequence[Choice]
    share: float | None = None  # where in what is possible; None: as near to no offset as possible
    left: int = MOST_CLOSURES

    def nearest(self, most: Ints) -> Ints | None:
        """With clocks up to a millisecond apart if possible, or else two, or four ..."""
        within_ns, farthest_ns = NS_PER_MS, int(most.max())
        while True:
            self.left = min(MOST_CLOSURES, MOST_WORK // len(most) ** 3)
            found = self.offsets(np.minimum(most, within_ns))
            if found is not None or within_ns >= farthest_ns:
                return found
            within_ns *= 2

    def offsets(self, most: Ints) -> Ints | None:
        """Offsets with differences, of row less column, up to `most`."""
        if not self._tighten(most):
            return None
        offsets = self._point(most)
        choice = self._unmet(offsets)
        if choice is None:
            return offsets
        by_distance = sorted(choice, key=lambda c: offsets[c[0]] - offsets[c[1]] - c[2])
        for one, other, limit in by_distance:
            tried = most.copy()
            tried[one, other] = min(limit, tried[one, other])
            found = self.offsets(tried)
            if found is not None:
                return found
        return None

    def around(self, offsets: Ints, most: Ints) -> Ints:
        """The bounds of the differences that meet everything as these offsets do."""
        gaps, bounds = self.gaps, most.copy()
        one, other, low, high = gaps.one, gaps.other, gaps.low, gaps.high
        below = offsets[one] - offsets[other] <= low
        np.minimum.at(bounds, (one[below], other[below]), low[below])
        np.minimum.at(bounds, (other[~below], one[~below]), -high[~below])
        for choice in self.choices:
            first, second, limit = max(choice, key=lambda c: c[2] - offsets[c[0]] + offsets[c[1]])
            bounds[first, second] = min(limit, bounds[first, second])
        _close(bounds)
        return bounds

    def _tighten(self, most: Ints) -> bool:
        """False: no offsets are within these bounds, or none were found in so many steps."""
        one, other, low, high = self.gaps.one, self.gaps.other, self.gaps.low, self.gaps.high
        while self.left > 0:
            self.left -= 1
            _close(most)
            if (most.diagonal() < 0).any():
                return False
            up, down = most[one, other], -most[other, one]
            above, below = (low < up) & (up < high), (low < down) & (down < high)
            if not (above.any() or below.any()):
                return True
            np.minimum.at(most, (one[above], other[above]), low[above])
            np.minimum.at(most, (other[below], one[below]), -high[below])
        return False

    def _point(self, most: Ints) -> Ints:
        """Of closed bounds, each offset can be chosen after the other."""
        offsets = np.zeros(len(most), np.int64)
        for at in range(1, len(most)):
            low = int((offsets[:at] - most[:at, at]).max())
            high = int((offsets[:at] + most[at, :at]).min())
            if self.share is None:
                offsets[at] = min(max(0, low), high)
            else:
                share = 1 - self.share if at % 2 else self.share
                offsets[at] = low + int(share * (high - low))
        return offsets

    def _unmet(self, offsets: Ints) -> Choice | None:
        gaps = self.gaps
        apart = offsets[gaps.one] - offsets[gaps.other]
        far = np.minimum(apart - gaps.low, gaps.high - apart)
        if len(far) and far.max() > 0:
            at = int(far.argmax())
            one, other = int(gaps.one[at]), int(gaps.other[at])
            return (one, other, int(gaps.low[at])), (other, one, -int(gaps.high[at]))
        return next(self._other_unmet(offsets), None)

    def _other_unmet(self, offsets: Ints) -> Iterator[Choice]:
        for choice in self.choices:
            if all(offsets[one] - offsets[other] > limit for one, other, limit in choice):
                yield choice


def _close(most: Ints) -> None:
    for via in range(len(most)):
        np.minimum(most, most[:, via, None] + most[None, via, :], out=most)
        np.maximum(most, -FAR, out=most)
