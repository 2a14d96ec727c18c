"""Sorts rows by several columns, and accumulates over them, fast."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lockcheck.history.table import Ints

BITS = 63  # of a non-negative number
BITS_OF_DIGITS = 16
BEFORE_ALL = -(1 << 62)


def order_by(*columns: NDArray[np.integer]) -> Ints:
    """The rows ordered by the first column, then by the next; a stable sort.

    Sorting digits, or words of all columns and the row number, is faster than sorting by columns.
    """
    count = len(columns[0])
    if count == 0:
        return np.zeros(0, np.int64)
    lows = [int(column.min()) for column in columns]
    widths = [
        (int(column.max()) - low).bit_length() for column, low in zip(columns, lows, strict=True)
    ]
    if len(columns) == 1 and widths[0] <= BITS_OF_DIGITS:
        return np.argsort((columns[0] - lows[0]).astype(np.uint16), kind="stable")
    own = (count - 1).bit_length()
    if sum(widths) + own > BITS:
        return np.lexsort(columns[::-1])
    words = np.zeros(count, np.int64)
    for column, low, width in zip(columns, lows, widths, strict=True):
        if width:
            words <<= width
            words |= column.astype(np.int64) - low
    words <<= own
    words |= np.arange(count)
    words.sort()
    words &= (1 << own) - 1
    return words


def groups_of(key: NDArray[np.integer]) -> Iterator[tuple[int, Ints]]:
    """Each value of a column, in ascending order, and the rows that have it, in theirs."""
    if len(key) == 0:
        return
    if (key == key[0]).all():
        yield int(key[0]), np.arange(len(key))
        return
    order = order_by(key)
    for group in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        yield int(key[group[0]]), group


def latest_before(key: NDArray[np.integer], end: Ints) -> Ints:
    """For each row the latest end above it with the same key; rows are sorted by key."""
    if len(end) == 0:
        return end
    low = int(end.min())
    span = int(end.max()) - low + 2
    group = np.cumsum(np.append(False, key[1:] != key[:-1]))
    if int(group[-1] + 1) * span >= 1 << 62:
        ends, rank = np.unique(end, return_inverse=True)
        latest = latest_before(key, rank.astype(np.int64))
        return np.where(latest >= 0, ends[np.maximum(latest, 0)], BEFORE_ALL)
    words = np.maximum.accumulate(group * span + (end - low + 1))
    before = np.append(0, words[:-1]) - group * span
    return np.where(before > 0, before - 1 + low, BEFORE_ALL)
