"""Renewals by a keeper, put into the sequence of the client whose hold they extend.

The engines that do not search take each client's operations one after the other. A keeper renews
whenever it likes: mostly between its client's operations on the lock, and then it is one of them.
Where it does not, its renewal, answered ok between `s` and `e`, says that its client held the lock
at some moment in between. If no acquire of that client can take effect in that time, the client
can only have let go, not come in: whoever held it later held it at `s`. So the renewal may be taken
to happen at `s`, and what ends the hold to happen after that: to ask for it later asks for more,
and lets nobody in sooner, since its promise runs from `s` anyway. That is exact.

Where an acquire can, it may be about either hold: that takes a search.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lockcheck.history.ordering import latest_before, order_by
from lockcheck.history.table import NEVER, Ints, Op, Outcome, Table


def has_keepers(table: Table) -> bool:
    return not np.array_equal(table.owner, table.process)


def in_their_clients_name(table: Table) -> Table:
    """For engines that do not mind if two operations of one client are under way together."""
    return replace(table, process=table.owner)


@dataclass(frozen=True, slots=True)
class Woven:
    table: Table
    until: Ints | None
    rows: Ints  # of the table that was given, for each row
    crossing: frozenset[int]  # keys of which it does not tell all


def woven(table: Table, until: Ints | None) -> Woven:
    """The operations of a lock, each client's one after the other as far as they were before."""
    own = in_their_clients_name(table)
    weaving = _Weaving.of(own, until)
    for spot in weaving.involved():
        weaving.place(spot)
    return weaving.done()


@dataclass(slots=True)
class _Weaving:
    table: Table
    until: Ints | None
    start: Ints
    end: Ints
    order: Ints  # rows of what happened, or may have, client after client
    client: Ints  # the number of each, in that order, and where it begins
    first: Ints
    acquired: Ints  # the last spot up to each that is a confirmed acquire
    released: Ints
    unsure_ns: dict[int, int]  # when a client first asked for it and was never answered
    kept: NDArray[np.bool_]
    placed: dict[tuple[int, int], int] = field(default_factory=dict)  # client, time: the row
    crossing: set[int] = field(default_factory=set)

    @staticmethod
    def of(table: Table, until: Ints | None) -> _Weaving:
        ok = table.outcome == Outcome.OK
        maybe = (table.outcome == Outcome.INFO) & (table.f != Op.RENEW)
        rows = np.flatnonzero((table.f <= Op.RENEW) & (ok | maybe))
        order = rows[order_by(table.key[rows], table.process[rows])]
        fresh = np.ones(len(order), bool)
        same = np.equal(table.key[order][1:], table.key[order][:-1])
        fresh[1:] = ~(same & (table.process[order][1:] == table.process[order][:-1]))
        client = np.cumsum(fresh) - 1
        f, sure = table.f[order], ok[order]
        unsure = np.flatnonzero(~sure & (f == Op.ACQUIRE))[::-1]
        asked = zip(client[unsure].tolist(), table.start[order[unsure]].tolist(), strict=True)
        telling = (table.f != Op.RENEW) | ok  # a renewal that was not confirmed tells nothing
        return _Weaving(
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
            telling,
        )

    def involved(self) -> list[int]:
        """Renewals that were under way together with something else of their client."""
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
        if self._may_come_in(spot):
            self.crossing.add(int(self.table.key[row]))
            return
        self._take(spot, row)

    def _may_come_in(self, spot: int) -> bool:
        """Whether an acquire of its client can take effect while the renewal is under way."""
        start, end = (int(column[self.order[spot]]) for column in (self.start, self.end))
        client = int(self.client[spot])
        if self.unsure_ns.get(client, NEVER) <= end:
            return True
        last = int(self.acquired[self._past(client, end) - 1])
        return bool(last >= self.first[client] and self.end[self.order[last]] > start)

    def _past(self, client: int, time_ns: int) -> int:
        """The spot after the last one of the client that began by then."""
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
        # Of two at one moment one says as much as both.
        self.kept[row] = False
        if self.until is not None:
            self.until[same] = max(self.until[same], self.until[row])

    def done(self) -> Woven:
        rows = np.flatnonzero(self.kept)
        rows = rows[np.lexsort((self.end[rows], self.start[rows]))]
        changed = replace(self.table, start=self.start, end=self.end)
        return Woven(
            changed.take(rows),
            None if self.until is None else self.until[rows],
            rows,
            frozenset(self.crossing),
        )


def _last(which: NDArray[np.bool_]) -> Ints:
    """For each spot the last one up to it that is one of these; -1 for none."""
    spots = np.where(which, np.arange(len(which)), -1)
    latest: Ints = np.maximum.accumulate(spots) if len(spots) else spots
    return latest
