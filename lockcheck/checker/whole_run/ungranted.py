"""The times in which clients asked for a lock and none was granted it: what safety cost in
availability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lockcheck.checker.examined import key_name
from lockcheck.checker.finding import Ungranted
from lockcheck.history.ordering import BEFORE_ALL, latest_before, order_by
from lockcheck.history.table import Codes, Ints, Op, Outcome, Table


@dataclass(frozen=True, slots=True)
class Ungrants:
    """All such times, each up to a grant or to the last that was heard of those who asked."""

    key: Codes
    since_ns: Ints
    length_ns: Ints

    @staticmethod
    def of(table: Table) -> Ungrants:
        """Counted from a grant, or from the first request after it. There is a request."""
        asked = np.flatnonzero(table.f == Op.ACQUIRE)
        # Without an answer, a request counts when it is sent: its client may be gone.
        answered = table.outcome[asked] != Outcome.INFO
        heard = np.where(answered, table.end[asked], table.start[asked])
        granted = table.outcome[asked] == Outcome.OK
        order = order_by(table.key[asked], heard, granted.astype(np.int8))
        asked, heard, granted = asked[order], heard[order], granted[order]
        key = table.key[asked]
        of_next_key = np.append(True, key[1:] != key[:-1])
        first = of_next_key | np.append(False, granted[:-1])  # of a time up to a grant
        last = np.append(first[1:], True)
        granted_ns = np.where(of_next_key, BEFORE_ALL, np.append(0, heard[:-1]))
        since_ns = np.maximum(granted_ns, _earliest_from(key, table.start[asked]))[first]
        return Ungrants(key[first], since_ns, heard[last] - since_ns)


def longest_ungranted(table: Table) -> Ungranted | None:
    """None: no client asked for a lock."""
    if not (table.f == Op.ACQUIRE).any():
        return None
    every = Ungrants.of(table)
    longest = int(every.length_ns.argmax())
    name = key_name(table, int(every.key[longest]))
    return Ungranted(name, int(every.since_ns[longest]), int(every.length_ns[longest]))


def _earliest_from(key: NDArray[np.int32], start: Ints) -> Ints:
    """For each row the earliest start from it on, with the same key; rows are sorted by key."""
    later = -latest_before(key[::-1], -start[::-1])[::-1]
    return np.minimum(start, later)
