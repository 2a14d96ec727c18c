"""Each client's own order where the clock does not show it: one operation ends at the moment at
which its client's next one begins.

A client is one thread of control, so the next one comes after. Lines of events are in the order in
which they were written. Rows of a log may be sorted in any way: there, nothing is known about two
operations that took no time, nor about renewals, which a thread beside the client may have made.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lockcheck.history.ordering import order_by
from lockcheck.history.table import NEVER, NOTHING, Ints, Op, Outcome, Table, among


def in_turn(table: Table, *, events: bool) -> Table:
    """The table with the turns of operations, if any touch. `events`: it was read from events."""
    rows = order_by(table.process)
    start, end, process = table.start[rows], table.end[rows], table.process[rows]
    if not ((end[:-1] == start[1:]) & (process[:-1] == process[1:])).any():
        return table
    turn = np.empty(len(rows), np.int32)
    turn[rows] = np.arange(len(rows))
    unknown = table.owner != table.process
    if not events:
        took_time = (end > start) & (end < NEVER)
        columns = process, start, took_time.astype(np.int8)
        order = order_by(*columns)
        fresh = [column[order][1:] != column[order][:-1] for column in columns]
        turn[rows[order]] = np.cumsum(np.append(False, np.logical_or.reduce(fresh)))
        unknown |= table.f == Op.RENEW
    turn[unknown] = NOTHING
    return replace(table, turn=turn)


def touching(table: Table) -> tuple[Ints, Ints]:
    """Pairs of rows on the same key: a confirmed operation, and one that its client began when it
    ended. What follows from other pairs may be missing."""
    rows = np.flatnonzero(table.turn != NOTHING)
    if len(rows) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = rows[order_by(table.key[rows], table.turn[rows])]
    key, turn, process = table.key[rows], table.turn[rows], table.process[rows]
    first = np.flatnonzero(np.append(True, (key[1:] != key[:-1]) | (turn[1:] != turn[:-1])))
    since = first[np.searchsorted(first, np.arange(len(rows)), "right") - 1]
    sure = np.flatnonzero(among(table.outcome[rows], (Outcome.OK, Outcome.EITHER)))
    # Of each row: the last confirmed one of an earlier turn, and the first one of that turn.
    beyond = np.searchsorted(sure, since)
    last = np.append(sure, 0)[beyond - 1]
    touch = (beyond > 0) & (key[last] == key) & (process[last] == process)
    touch &= table.end[rows[last]] == table.start[rows]
    many = np.where(touch, beyond - np.searchsorted(sure, since[last]), 0)
    after = np.repeat(np.arange(len(rows)), many)
    nth = np.arange(len(after)) - np.repeat(np.cumsum(many) - many, many)
    return rows[sure[beyond[after] - 1 - nth]], rows[after]


def in_own_order(table: Table, one: int, other: int) -> bool:
    """Whether their client did the one before the other, as far as turns tell."""
    turns = table.turn[one], table.turn[other]
    same = table.process[one] == table.process[other]
    return bool(same and NOTHING < turns[0] < turns[1])
