"""The operations of a lock in the order of its clients: each client's own ones next to each other.

Failed operations did not happen and are left out, and so are unconfirmed renewals, which change and
prove nothing. `spots` are places in this order; a client is one process at one key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lockcheck.checker.linearizability.leases import NO_PROMISE
from lockcheck.history.ordering import order_by
from lockcheck.history.table import (
    NEVER,
    NO_TOKEN,
    Bytes,
    Ints,
    Mask,
    Op,
    Outcome,
    Table,
    among,
)

Spots = NDArray[np.intp]

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Clients:
    """All operations, client after client."""

    table: Table
    row: Spots  # of the table, for each spot
    f: Bytes
    starts: Spots  # the first spot of each client
    marks: Spots  # the spots of confirmed operations
    maybe_acquired: Spots  # acquires and releases that may have had no effect
    maybe_released: Spots
    until: Ints | None  # for each mark: the end of the promise of a grant or renewal
    overlapping: Spots  # those that begin before their client's previous one ended
    going_on: Spots  # those that begin exactly when it ended, or after an unconfirmed one

    @staticmethod
    def of(table: Table, until: Ints | None) -> Clients:
        rows, starts = _by_client(table)
        f, ok = table.f[rows], table.outcome[rows] == Outcome.OK
        answered = ok | (table.outcome[rows] == Outcome.EITHER)
        start, end = table.start[rows], table.end[rows]
        again = np.ones(len(rows), bool)
        again[starts] = False
        again, begun = again[1:], start[1:]
        before = np.where(answered[:-1], end[:-1], begun)
        marks = np.arange(len(rows)) if ok.all() else np.flatnonzero(ok)
        release = f[marks] == Op.RELEASE
        return Clients(
            table,
            rows,
            f,
            starts,
            marks,
            np.flatnonzero(~ok & (f == Op.ACQUIRE)),
            np.flatnonzero(~ok & (f == Op.RELEASE)),
            None if until is None else np.where(release, NO_PROMISE, until[rows[marks]]),
            1 + np.flatnonzero(again & (before > begun)),
            1 + np.flatnonzero(again & (before == begun)),
        )

    @property
    def entered_again(self) -> Spots:
        """The confirmed acquires of clients whose last confirmed operation was no release."""
        f, client = self.f[self.marks], self.client(self.marks)
        again = (f[1:] == Op.ACQUIRE) & (f[:-1] != Op.RELEASE) & (client[1:] == client[:-1])
        spots: Spots = self.marks[1:][again]
        return spots

    def client(self, spots: Spots) -> Spots:
        return np.searchsorted(self.starts, spots, "right") - 1

    def key(self, spots: Spots) -> Ints:
        return self.table.key[self.row[spots]].astype(np.int64)

    def start(self, spots: Spots) -> Ints:
        """The start of each spot; NEVER for NOWHERE."""
        return np.where(spots == NOWHERE, NEVER, self.table.start[self.row[spots]])

    def end(self, spots: Spots) -> Ints:
        return np.where(spots == NOWHERE, NEVER, self.table.end[self.row[spots]])

    def token(self, spots: Spots) -> Ints:
        token = self.table.token[self.row[spots]]
        token[self.f[spots] != Op.ACQUIRE] = NO_TOKEN
        return token


def relevant(table: Table) -> Mask:
    """The confirmed operations on locks, and those that may have changed one."""
    maybe = among(table.outcome, (Outcome.INFO, Outcome.EITHER)) & (table.f != Op.RENEW)
    wanted: Mask = (table.f <= Op.RENEW) & ((table.outcome == Outcome.OK) | maybe)
    return wanted


def _by_client(table: Table) -> tuple[Spots, Spots]:
    """The rows that matter, client by client, and the first spot of each client."""
    rows = np.flatnonzero(relevant(table))
    client = _numbers(table, rows)
    order = order_by(client)
    client = client[order]
    first = np.ones(len(rows), bool)
    np.not_equal(client[1:], client[:-1], out=first[1:])
    del client  # with ten million rows each column counts
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
