"""All rows of a log, in order: what each client did, and when.

Only a renewal may overlap another operation of its client. Then it belongs to the keeper, the
thread that keeps a lease alive, which gets a name of its own.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lockcheck.errors import HistoryError
from lockcheck.formats.jepsen.jepsen_op import is_plain_number
from lockcheck.formats.names import our_client
from lockcheck.formats.source import Source
from lockcheck.formats.tables.cell_columns import ABSENT
from lockcheck.formats.tables.intervals import Intervals
from lockcheck.history.assembly import keeper_of
from lockcheck.history.event import EventType, F, Notice
from lockcheck.history.table import NEVER, NOTHING, Ints, Mask

LONGEST_NS = 1 << 60
COPIES = "{number} rows are copies of others: they were ignored"


class Rows:
    """Rows as columns: place `i` of each is about the same row; times begin with the first."""

    def __init__(self, given: Intervals, source: Source) -> None:
        """`given` must have at least one row."""
        self.given = given
        self._source = source
        copies = given.without_copies()
        source.note(copies, "1 row is a copy of another: it was ignored", COPIES)
        self._line = given.column("line")
        self._path, self._number = given.column("path"), given.column("number")
        self.op, self.outcome = given.column("op"), given.column("outcome")
        self.key, self.seq = given.column("key"), given.column("seq")
        self.lost = given.fs.are(self.op, Notice.LOST)
        self._check_numbers()
        self.start, self._end = self._times()
        self.client, self.owner = given.column("client"), given.column("of")
        self.processes = self._processes()
        order = self._by_client()
        keepers = self._keepers(order[~self.lost[order]])
        if keepers:
            self._name_keepers(keepers)
            order = self._by_client()
        self.order = order  # client after client, each in the order of its operations
        self.answered = self._answered(order[~self.lost[order]])

    def __len__(self) -> int:
        return len(self.start)

    def _where(self, place: int) -> str:
        """Its place within its line; empty if it is the whole line."""
        path = self.given.paths.meaning(self._path[place])
        return f"{path}[{self._number[place]}]" if path else ""

    def _name(self, place: int) -> str:
        return self._where(place) or f"line {self._line[place]}"

    def _error(self, place: int, reason: str, *, cure: str = "") -> HistoryError:
        where, line = self._where(place), int(self._line[place])
        reason = f"{where}: {reason}" if where else reason
        return HistoryError(reason, source=self._source.name, line=line, cure=cure)

    def _check_numbers(self) -> None:
        """Refuses two writes of a key with the same number: their order would be unknown."""
        sure = self.given.outcomes.are(self.outcome, EventType.OK) & (self.seq != ABSENT)
        rows = np.flatnonzero(sure & self.given.fs.are(self.op, F.WRITE))
        rows = rows[np.lexsort((self.seq[rows], self.key[rows]))]
        one, other = rows[:-1], rows[1:]
        same = (self.key[one] == self.key[other]) & (self.seq[one] == self.seq[other])
        if same.any():
            place = int(other[same].min())
            like = (self.key[rows] == self.key[place]) & (self.seq[rows] == self.seq[place])
            first = self._name(int(rows[like].min()))
            reason = f"its number {self.seq[place]} is that of another write, {first}"
            cure = "a storage numbers each write of a key once"
            raise self._error(place, reason, cure=cure)

    def _times(self) -> tuple[Ints, Ints]:
        """When each row begins and ends; NEVER if that is unknown."""
        start, end = self.given.column("start_ns"), self.given.column("end_ns")
        first, last = int(start.min()), np.maximum(start, end)
        if int(last.max()) - first > LONGEST_NS:
            late = int(np.argmax(last > first + LONGEST_NS))
            raise self._error(late, "its time lies more than 36 years after the first one")
        # An end before the first start stays one, however far before, and is refused below.
        end = np.where(end == ABSENT, NEVER, np.maximum(end, first - 1) - first)
        start = start - first
        if (end < start).any():
            raise self._error(int(np.argmax(end < start)), "it ends before it begins")
        self._source.counts_from(first)
        return start, end

    @property
    def began_ns(self) -> int:
        return self._source.began_ns

    def _processes(self) -> list[int | str]:
        """The process of each client: its number, if all clients are numbers."""
        names = self.given.names.meant
        if all(map(is_plain_number, names)):
            return [int(name) for name in names]
        return [our_client(name) for name in names]

    def _by_client(self) -> Ints:
        until = np.where(self.lost, self.start, self._end)
        return np.lexsort((until, self.start, self.client))

    def _keepers(self, order: Ints) -> list[int]:
        """The renewals that overlap another operation; `order` is client after client."""
        renewals = self.given.fs.are(self.op, F.RENEW)
        if not (renewals.any() and self._clash(order).any()):
            return []
        found: list[int] = []
        busy_until, client = -1, NOTHING
        clients, start, end = self.client.tolist(), self.start.tolist(), self._end.tolist()
        for place, coming in pairwise([*order.tolist(), None]):
            if clients[place] != client:
                client, busy_until = clients[place], -1
            answered = -1 if end[place] == NEVER else end[place]
            if not renewals[place]:
                busy_until = max(busy_until, answered)
                continue
            soon = coming is not None and clients[coming] == client and start[coming] < answered
            if soon or busy_until > start[place]:
                found.append(place)
        return found

    def _clash(self, order: Ints) -> Mask:
        """Which operations were answered after their client's next operation had begun."""
        here, after = order[:-1], order[1:]
        clash: Mask = (self._end[here] != NEVER) & (self._end[here] > self.start[after])
        clash &= self.client[here] == self.client[after]
        return clash

    def _name_keepers(self, keepers: list[int]) -> None:
        """Gives each of these renewals the name of its client's keeper."""
        names, owner = self.given.names, self.owner.copy()
        for place in keepers:
            client = int(self.client[place])
            keeper = keeper_of(names.meant[client])
            self.client[place] = names.number(keeper)
            owner[place] = client if owner[place] == NOTHING else owner[place]
        self.owner = owner
        self.processes += map(our_client, names.meant[len(self.processes) :])

    def _answered(self, order: Ints) -> Ints:
        """When each was answered or given up, or NEVER; `order` is that of the operations."""
        here, after = order[:-1], order[1:]
        clash = np.flatnonzero(self._clash(order))
        if len(clash):
            late, busy = min(zip(after[clash].tolist(), here[clash].tolist(), strict=True))
            reason = f"its client is still busy with {self._name(busy)}"
            cure = "a client is one thread of control: give each its own name"
            raise self._error(late, reason, cure=cure)
        answered = self._end.copy()
        given_up = (self.client[here] == self.client[after]) & (self._end[here] == NEVER)
        answered[here[given_up]] = self.start[after[given_up]]
        return answered
