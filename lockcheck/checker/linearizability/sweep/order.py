"""Decides whether all holds can come one after the other: holds that exclude others must not
overlap, and each other hold needs a moment outside of them.

That suffices: holds for which it is true can be ordered by the later one of their two times. For
keys without a conflict no order is computed, only two columns are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lockcheck.checker.linearizability.sweep.holds import SweepHolds
from lockcheck.history.ordering import groups_of
from lockcheck.history.table import Ints, Mask


@dataclass(frozen=True, slots=True)
class Collision:
    """Two holds that exclude each other; or, with a `reason`, the first may not come first."""

    one: int  # the index of a hold
    other: int
    at: int  # ns: when it became visible
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SortKeys:
    """Key and time in one number that sorts like the pair."""

    begin: Ints
    end: Ints
    bits: int
    low: int  # the lowest key

    @staticmethod
    def of(holds: SweepHolds, key: Ints) -> SortKeys:
        begin, end = holds.begin, holds.end
        low, top = int(min(begin.min(), end.min())), int(begin.max()) + 1
        end = np.minimum(end, top)  # what ends after the last begin ends too late for all
        lowest, highest = int(key.min()), int(key.max())
        bits = (top - low).bit_length()
        if bits + (highest - lowest).bit_length() > 62:
            times = np.unique(np.concatenate((begin, end)))
            begin, end = np.searchsorted(times, begin), np.searchsorted(times, end)
            low, bits = 0, len(times).bit_length()
        if lowest == highest:
            return SortKeys(begin - low, end - low, bits, lowest)
        high = (key - lowest) << bits
        return SortKeys(high | (begin - low), high | (end - low), bits, lowest)

    def keys(self, words: Ints) -> Ints:
        return (words >> self.bits) + self.low


def keys_in_conflict(holds: SweepHolds) -> Ints:
    if len(holds) == 0:
        return np.zeros(0, np.int64)
    words = SortKeys.of(holds, holds.key)
    excluding = words.end > words.begin
    begins, ends = words.begin[excluding], words.end[excluding]
    begins.sort()
    ends.sort()
    bad = begins[1:][begins[1:] < ends[:-1]]
    if not excluding.all() and len(begins):
        early, late = words.end[~excluding], words.begin[~excluding]
        inside = np.searchsorted(begins, early) - 1
        caught = (inside >= 0) & (ends[inside] > late)
        bad = np.concatenate((bad, late[caught]))
    return np.unique(words.keys(bad))


def keys_with_company(holds: SweepHolds) -> Ints:
    """Of locks that some share: the keys where a hold that is not shared is not alone, or has no
    moment to itself."""
    bad = [key for key, which in groups_of(holds.key) if not _apart(holds.take(which))]
    return np.array(bad, dtype=np.int64)


def _apart(holds: SweepHolds) -> bool:
    shared = holds.clients.table.shared[holds.clients.row[holds.first]]
    order = np.flatnonzero(holds.end > holds.begin)
    order = order[np.argsort(holds.begin[order], kind="stable")]
    begin, end, alone = holds.begin[order], holds.end[order], ~shared[order]
    latest = np.maximum.accumulate(end)
    latest_alone = np.maximum.accumulate(np.where(alone, end, begin.min(initial=0)))
    if (begin[1:] < np.where(alone[1:], latest[:-1], latest_alone[:-1])).any():
        return False
    short = np.flatnonzero(holds.end <= holds.begin)
    for which, beside in ((~shared[short], np.ones(len(order), np.bool_)), (shared[short], alone)):
        low, high = holds.end[short[which]], holds.begin[short[which]]
        if _covered(low, high, begin[beside], end[beside]).any():
            return False
    return True


def _covered(low: Ints, high: Ints, begin: Ints, end: Ints) -> Mask:
    """Which of the spans have no moment outside of those that begin and end then."""
    if len(begin) == 0:
        return np.zeros(len(low), np.bool_)
    latest = np.maximum.accumulate(end)
    first = np.flatnonzero(np.append(True, begin[1:] >= latest[:-1]))
    last = np.append(first[1:], len(begin)) - 1
    inside = np.searchsorted(begin[first], low, "left") - 1
    covered: Mask = (inside >= 0) & (latest[last[inside]] > high)
    return covered


def collisions(holds: SweepHolds) -> Iterator[Collision]:
    """The earliest collision of each kind among the holds of one key."""
    excluding = np.flatnonzero(holds.end > holds.begin)
    order = excluding[np.argsort(holds.begin[excluding], kind="stable")]
    begin, end = holds.begin[order], holds.end[order]
    latest = np.maximum.accumulate(end)
    bad = np.flatnonzero(begin[1:] < latest[:-1])
    if len(bad):
        at = int(bad[0])
        one = int(np.argmax(end[: at + 1]))
        yield Collision(int(order[one]), int(order[at + 1]), int(begin[at + 1]))
    others = np.flatnonzero(holds.end <= holds.begin)
    if len(order) == 0 or len(others) == 0:
        return
    before = np.searchsorted(begin, holds.end[others]) - 1
    caught = np.flatnonzero((before >= 0) & (latest[before] > holds.begin[others]))
    if len(caught):
        first = caught[np.argmin(holds.begin[others[caught]])]
        one = int(np.argmax(end[: before[first] + 1]))
        other = int(others[first])
        yield Collision(int(order[one]), other, int(holds.begin[other]))
