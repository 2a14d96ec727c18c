"""Sorting rows by several columns, as fast as it can be done."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lockcheck.history.table import Ints

BITS = 63  # of a number that is not negative
BITS_OF_DIGITS = 16


def order_by(*columns: NDArray[np.integer]) -> Ints:
    """The rows by the first column, then by the next one; those that are equal as they stand.

    One column of small numbers is sorted by its digits. Otherwise, where all columns and the row's
    own number fit into one word, sorting the words takes a fraction of what sorting by columns
    does: they are compared at once, and nothing else is moved.
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
