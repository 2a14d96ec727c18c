"""The longest time in which clients asked for a lock and none was granted it: what safety cost in
availability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lockcheck.checker.examined import key_name
from lockcheck.checker.finding import Ungranted
from lockcheck.history.ordering import BEFORE_ALL, latest_before, order_by
from lockcheck.history.table import Ints, Op, Outcome, Table


def longest_ungranted(table: Table) -> Ungranted | None:
    """Counted from a grant, or from the first request after it, to the next grant or else to the
    last that was heard of those who asked. None: no client did."""
    asked = np.flatnonzero(table.f == Op.ACQUIRE)
    if len(asked) == 0:
        return None
    # Without an answer, a request counts when it is sent: its client may be gone.
    answered = table.outcome[asked] != Outcome.INFO
    heard = np.where(answered, table.end[asked], table.start[asked])
    granted = table.outcome[asked] == Outcome.OK
    order = order_by(table.key[asked], heard, granted.astype(np.int8))
    asked, heard, granted = asked[order], heard[order], granted[order]
    key = table.key[asked]
    of_next_key = np.append(True, key[1:] != key[:-1])
    first = of_next_key | np.append(False, granted[:-1])  # of a stretch up to a grant
    last = np.append(first[1:], True)
    granted_ns = np.where(of_next_key, BEFORE_ALL, np.append(0, heard[:-1]))
    since_ns = np.maximum(granted_ns, _earliest_from(key, table.start[asked]))[first]
    lengths = heard[last] - since_ns
    longest = int(lengths.argmax())
    name = key_name(table, int(key[first][longest]))
    return Ungranted(name, int(since_ns[longest]), int(lengths[longest]))


def _earliest_from(key: NDArray[np.int32], start: Ints) -> Ints:
    """For each row the earliest start from it on, with the same key; rows are sorted by key."""
    later = -latest_before(key[::-1], -start[::-1])[::-1]
    return np.minimum(start, later)
