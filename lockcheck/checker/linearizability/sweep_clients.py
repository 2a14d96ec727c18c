"""The operations of a lock in the order of its clients: each client's own ones next to each other.

What failed did not happen and is left out, and so is a renewal that nobody confirmed: it changes
nothing and asserts nothing. `spots` are places in this order; a client is one process at one key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lockcheck.history.ordering import order_by
from lockcheck.history.table import NEVER, NO_TOKEN, Bytes, Ints, Op, Outcome, Table

Flags = NDArray[np.bool_]
Spots = NDArray[np.intp]

NO_PROMISE = -NEVER  # of an operation that promises nothing: before everything


@dataclass(frozen=True, slots=True)
class Clients:
    table: Table
    row: Spots  # of the table, for each spot
    f: Bytes
    start: Ints
    end: Ints
    starts: Spots  # the first spot of each client
    marks: Spots  # the spots that were answered ok
    maybe_acquired: Spots  # nobody confirmed these
    maybe_released: Spots
    overlapping: Flags  # for each client: two of its own operations at the same time
    touching: Flags  # for each client: one begins in the nanosecond in which another ends
    until: Ints | None  # for each mark: the promise of a grant or renewal
    promised: Ints | None  # as it was given, for each row of the table

    @staticmethod
    def of(table: Table, until: Ints | None) -> Clients:
        clients = Clients._of(table, until, *_by_client(table))
        if not clients.overlapping.any():
            return clients
        # What took no time comes before what begins with it, however they were written down.
        rows, client = clients.row, clients.client(np.arange(len(clients.row)))
        order = np.lexsort((clients.end, clients.start, client))
        return Clients._of(table, until, rows[order], clients.starts)

    def eager(self) -> Clients:
        """The same with what nobody confirmed before all that had not ended when it began: that it
        comes after what ended in that nanosecond is only one of two possible orders."""
        confirmed = np.zeros(len(self.row), bool)
        confirmed[self.marks] = True
        time = np.where(confirmed, self.end, self.start)
        client = self.client(np.arange(len(self.row)))
        order = np.lexsort((confirmed, time, client))
        return Clients._of(self.table, self.promised, self.row[order], self.starts)

    @staticmethod
    def _of(table: Table, until: Ints | None, rows: Spots, starts: Spots) -> Clients:
        first = np.zeros(len(rows), bool)
        first[starts] = True
        f, ok = table.f[rows], table.outcome[rows] == Outcome.OK
        start, end = table.start[rows], table.end[rows]
        marks = np.arange(len(rows)) if ok.all() else np.flatnonzero(ok)
        maybe = np.flatnonzero(~ok)
        late = ok[:-1] & ~first[1:] & (end[:-1] >= start[1:])
        overlapping, touching = _clashes(starts, late, start, end)
        return Clients(
            table,
            rows,
            f,
            start,
            end,
            starts,
            marks,
            maybe[f[maybe] == Op.ACQUIRE],
            maybe[f[maybe] == Op.RELEASE],
            overlapping,
            touching,
            None if until is None else _promised(f[marks], until[rows[marks]]),
            until,
        )

    def client(self, spots: Spots) -> Spots:
        return np.searchsorted(self.starts, spots, "right") - 1

    def key(self, spots: Spots) -> Ints:
        return self.table.key[self.row[spots]].astype(np.int64)

    def token(self, spots: Spots) -> Ints:
        told = self.table.token[self.row[spots]]
        return np.where(self.f[spots] == Op.ACQUIRE, told, NO_TOKEN)

    def until_of(self, marks: Spots) -> Ints:
        return np.full(len(marks), NEVER) if self.until is None else self.until[marks]


def _clashes(starts: Spots, late: Flags, start: Ints, end: Ints) -> tuple[Flags, Flags]:
    overlapping, touching = np.zeros(len(starts), bool), np.zeros(len(starts), bool)
    spots = np.flatnonzero(late)
    client = np.searchsorted(starts, spots, "right") - 1
    equal = end[spots] == start[spots + 1]
    overlapping[client[~equal]] = True
    touching[client[equal]] = True
    return overlapping, touching


def _promised(f: Bytes, until: Ints) -> Ints:
    return np.where(f == Op.RELEASE, NO_PROMISE, until)


def _by_client(table: Table) -> tuple[Spots, Spots]:
    """The rows that matter, client by client, and where each of these begins."""
    locking = table.f <= Op.RENEW
    told = table.outcome == Outcome.OK
    matters = locking & (told | ((table.outcome == Outcome.INFO) & (table.f != Op.RENEW)))
    rows = np.flatnonzero(matters)
    client = _numbers(table, rows)
    order = order_by(client)
    client = client[order]
    first = np.ones(len(rows), bool)
    np.not_equal(client[1:], client[:-1], out=first[1:])
    return rows[order], np.flatnonzero(first)


def _numbers(table: Table, rows: Spots) -> Ints:
    process, key = table.process, table.key
    if len(rows) < len(table):
        process, key = process[rows], key[rows]
    if len(rows) == 0:
        return np.zeros(0, np.int64)
    low = int(process.min())
    width = int(process.max()) - low + 1
    lowest = int(key.min())
    if lowest == int(key.max()):
        return (process - low).astype(np.int64)
    return (key.astype(np.int64) - lowest) * width + (process - low)
