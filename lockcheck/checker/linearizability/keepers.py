"""Merges a keeper's renewals into the operations of its client.

The engines that do not search process each client's operations one after the other. A keeper's
renewal mostly comes between its client's operations on the lock, and then it is one of them. If it
overlaps one, its renewal, answered ok between `s` and `e`, shows that its client held the lock at
some moment in between. If no acquire of that client can take effect in that time, the client can
only have released: the hold that was renewed existed at `s`. So the renewal may be taken to happen
at `s`, and the end of the hold after that. That admits no other orders, since the promise runs from
`s` anyway: it is exact.

If an acquire can take effect in that time, the renewal may be about either hold: that takes a
search.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from lockcheck.checker.linearizability.sweep.clients import relevant
from lockcheck.history.ordering import latest_before, order_by
from lockcheck.history.table import NEVER, Ints, Mask, Op, Outcome, Table


def has_keepers(table: Table) -> bool:
    return not np.array_equal(table.owner, table.process)


def as_clients(table: Table) -> Table:
    """The table with keepers' renewals as their clients' operations, which may overlap."""
    return replace(table, process=table.owner)


@dataclass(frozen=True, slots=True)
class MergedRenewals:
    """The operations of locks without overlaps between keepers and clients."""

    table: Table
    until: Ints | None
    rows: Ints  # for each row its row in the given table
    ambiguous: frozenset[int]  # keys where a renewal may be about either of two holds


def merged_renewals(table: Table, until: Ints | None) -> MergedRenewals:
    """Merges the renewals of keepers, so that no operations of a client overlap."""
    own = as_clients(table)
    merge = _Merge.of(own, until)
    for spot in merge.involved():
        merge.place(spot)
    return merge.done()


@dataclass(slots=True)
class _Merge:
    table: Table
    until: Ints | None
    start: Ints
    end: Ints
    order: Ints  # rows of what happened, or may have, client after client; a spot indexes it
    client: Ints  # the number of each spot's client, and the first spot of each client
    first: Ints
    acquired: Ints  # for each spot the last one up to it that is a confirmed acquire
    released: Ints
    unsure_ns: dict[int, int]  # by client: the first acquire without an answer
    kept: Mask
    placed: dict[tuple[int, int], int] = field(default_factory=dict)  # client, time: the row
    ambiguous: set[int] = field(default_factory=set)

    @staticmethod
    def of(table: Table, until: Ints | None) -> _Merge:
        ok = table.outcome == Outcome.OK
        rows = np.flatnonzero(relevant(table))
        order = rows[order_by(table.key[rows], table.process[rows])]
        fresh = np.ones(len(order), bool)
        fresh[1:] = ~table.same_client(order[1:], order[:-1])
        client = np.cumsum(fresh) - 1
        f, sure = table.f[order], ok[order]
        unsure = np.flatnonzero(~sure & (f == Op.ACQUIRE))[::-1]
        asked = zip(client[unsure].tolist(), table.start[order[unsure]].tolist(), strict=True)
        kept = (table.f != Op.RENEW) | ok  # an unconfirmed renewal proves nothing
        return _Merge(
            table,
            None if until is None else until.copy(),
            table.start.copy(),
            table.end.copy(),
            order,
            client,
            np.flatnonzero(fresh),
            _last(sure & (f == Op.ACQUIRE)),
            _last(sure & (f == Op.RELEASE)),
            dict(asked),
            kept,
        )

    def involved(self) -> list[int]:
        """The renewals that overlap another operation of their client."""
        start, end = self.table.start[self.order], self.table.end[self.order]
        if len(start) == 0:
            return []
        end = np.where(end == NEVER, start, end)
        beside = latest_before(self.client, end) > start
        beside[:-1] |= (self.client[1:] == self.client[:-1]) & (start[1:] < end[:-1])
        found: list[int] = np.flatnonzero(beside & (self.table.f[self.order] == Op.RENEW)).tolist()
        return found

    def place(self, spot: int) -> None:
        row = int(self.order[spot])
        if self._may_be_granted(spot):
            self.ambiguous.add(int(self.table.key[row]))
            return
        self._take(spot, row)

    def _may_be_granted(self, spot: int) -> bool:
        """Whether an acquire of its client can take effect while the renewal is under way."""
        start, end = (int(column[self.order[spot]]) for column in (self.start, self.end))
        client = int(self.client[spot])
        if self.unsure_ns.get(client, NEVER) <= end:
            return True
        last = int(self.acquired[self._past(client, end) - 1])
        return bool(last >= self.first[client] and self.end[self.order[last]] > start)

    def _past(self, client: int, time_ns: int) -> int:
        """The spot after the client's last one that began by then."""
        low = int(self.first[client])
        high = int(self.first[client + 1]) if client + 1 < len(self.first) else len(self.order)
        starts = self.table.start[self.order[low:high]]
        return low + int(np.searchsorted(starts, time_ns, "right"))

    def _take(self, spot: int, row: int) -> None:
        start, client = int(self.start[row]), int(self.client[spot])
        self.end[row] = start
        left = int(self.released[spot])
        if left >= self.first[client] and self.end[self.order[left]] > start:
            self.start[self.order[left]] = max(start, int(self.start[self.order[left]]))
        same = self.placed.setdefault((client, start), row)
        if same == row:
            return
        # Of two renewals at one moment one suffices.
        self.kept[row] = False
        if self.until is not None:
            self.until[same] = max(self.until[same], self.until[row])

    def done(self) -> MergedRenewals:
        rows = np.flatnonzero(self.kept)
        rows = rows[np.lexsort((self.end[rows], self.start[rows]))]
        changed = replace(self.table, start=self.start, end=self.end)
        return MergedRenewals(
            changed.take(rows),
            None if self.until is None else self.until[rows],
            rows,
            frozenset(self.ambiguous),
        )


def _last(which: Mask) -> Ints:
    """For each spot the last one up to it that is marked; -1 if there is none."""
    spots = np.where(which, np.arange(len(which)), -1)
    latest: Ints = np.maximum.accumulate(spots) if len(spots) else spots
    return latest
