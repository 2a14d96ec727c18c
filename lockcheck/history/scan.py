"""A long history: its operations as columns, and its events only where they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import IO, Protocol, TypeAlias

import numpy as np

from lockcheck.history.columns import Columns, read_columns
from lockcheck.history.event import Event, Terms, earlier, with_interned_texts
from lockcheck.history.files import decode_line, events_in
from lockcheck.history.history import History
from lockcheck.history.model import Operation, name_of
from lockcheck.history.ordering import order_by
from lockcheck.history.table import NEVER, NOTHING, Ints, Op, Outcome, Table, among

Opener: TypeAlias = Callable[[], IO[bytes]]  # the same bytes each time
AskTerms: TypeAlias = Callable[[Terms, int], Terms]


@dataclass(frozen=True)
class Holds:
    """All grants, held for certain so long or longer: a loss or validity is not considered."""

    granted: Ints  # rows of granted acquires, by key and then in the order of their answers
    ended: Ints  # rows of the release, or next attempt, that ended each; or -1
    start: Ints
    end: Ints


class Events(Protocol):
    """The events of a history by their places, which are in the order of the times."""

    def at(self, places: Ints) -> dict[int, Event]:
        """The events at these places, in their order; negative places are ignored."""

    def __iter__(self) -> Iterator[Event]: ...


@dataclass(frozen=True)
class Scan:
    """A history of which only the columns have been read."""

    source: str
    events: Events
    columns: Columns
    context: History  # all that is not an operation: notices, stalls, faults
    terms: Terms

    @property
    def table(self) -> Table:
        return self.columns.table

    @cached_property
    def holds(self) -> Holds:
        return _holds(self.columns)

    def operations(self, rows: Iterable[int]) -> list[Operation]:
        wanted = list(rows)
        invoked = self.events.at(self.columns.invoked_at[wanted])
        answered = self.events.at(self.columns.answered_at[wanted])
        return [
            Operation(
                invoked[int(self.columns.invoked_at[row])],
                answered.get(int(self.columns.answered_at[row])),
            )
            for row in wanted
        ]

    def of(self, rows: Iterable[int], ledger_rows: Ints | None = None) -> History:
        """A history of these operations, these rows of the ledger, and all other events."""
        chosen = np.fromiter(rows, np.int64)
        columns = self.columns
        at = [columns.invoked_at[chosen], columns.answered_at[chosen], columns.special_at]
        at += [] if ledger_rows is None else [columns.ledger.at[ledger_rows]]
        read = self.events.at(np.concatenate(at))
        part = History.of(read.values(), source=self.source, terms=self.terms)
        rows_read = tuple(np.unique(chosen).tolist())
        return replace(part, known_clients=self.clients, known_rows=rows_read)

    @cached_property
    def clients(self) -> frozenset[str]:
        """The nodes of all operations."""
        node, symbols = self.columns.node, self.table.symbols
        unnamed = np.isin(node, (NOTHING, symbols.number("")))  # see `Operation.node`
        nameless = np.unique(self.table.process[unnamed]).tolist()
        named = np.unique(node[~unnamed]).tolist()
        names = [str(symbols.value(number)) for number in named]
        return frozenset([*names, *(name_of(symbols.value(each)) for each in nameless)])

    def around(
        self, groups: Iterable[Ints], ledger_rows: Ints | None = None, besides: Sequence[int] = ()
    ) -> History:
        """The operations on the same keys that overlap any of these groups, with complete holds, so
        what judges find is certain; and the given `ledger_rows` and the rows `besides`."""
        inside = [self._at_the_time_of(group) for group in groups if len(group)]
        if not inside:
            return replace(self.context, known_clients=self.clients)
        rows = np.unique(np.concatenate([np.zeros(0, np.int64), *inside]))
        # Also the holds that were released then: others waited for that.
        left = np.isin(self.holds.ended, rows)
        rows = np.union1d(rows, self.holds.granted[left])
        rows = np.union1d(rows, np.array(besides, np.int64))
        return self.of(np.union1d(rows, self._rest_of_holds(rows)).tolist(), ledger_rows)

    def _at_the_time_of(self, rows: Ints) -> Ints:
        """The rows on the same keys that were under way between the first and the last of these."""
        table, (end, latest_so_far) = self.table, self._ends
        low, high = table.start[rows].min(), max(table.start[rows].max(), end[rows].max())
        first = int(np.searchsorted(latest_so_far, low, "left"))
        past = int(np.searchsorted(table.start, high, "right"))
        near = slice(first, past)
        keys = table.key[rows]
        alone = bool((keys == keys[0]).all())
        same = table.key[near] == keys[0] if alone else np.isin(table.key[near], keys)
        inside = (end[near] >= low) & same
        found: Ints = first + np.flatnonzero(inside)
        return found

    @cached_property
    def _ends(self) -> tuple[Ints, Ints]:
        """When each operation was last known to be under way, and the running maximum of that."""
        end = np.where(self.table.end == NEVER, self.table.start, self.table.end)
        return end, np.maximum.accumulate(end)

    def _rest_of_holds(self, rows: Ints) -> Ints:
        """The other operations of clients that were granted a lock in these rows, up to the
        release. If a client was granted the lock again instead, up to the end of that hold."""
        holds, table = self.holds, self.table
        ended = dict(zip(holds.granted.tolist(), holds.ended.tolist(), strict=True))
        waiting = [row for row in rows.tolist() if row in ended]
        found = [np.zeros(0, np.int64)]
        while waiting:
            first = waiting.pop()
            last = ended.pop(first, first)
            until = last + 1 if last >= 0 else len(table)
            own = self._rows_of(int(table.process[first]))
            found.append(own[slice(*np.searchsorted(own, (first, until)))])
            if last in ended:
                waiting.append(last)
        return np.concatenate(found)

    def _rows_of(self, process: int) -> Ints:
        """The rows of the process, and of its keepers on its behalf, in order."""
        whose, rows = self._by_owner
        return rows[slice(*np.searchsorted(whose, (process, process + 1)))]

    @cached_property
    def _by_owner(self) -> tuple[Ints, Ints]:
        table = self.table
        kept = np.flatnonzero(table.owner != table.process)
        rows = np.concatenate((np.arange(len(table)), kept))
        whose = np.concatenate((table.process, table.owner[kept])).astype(np.int64)
        order = order_by(whose, rows)
        return whose[order], rows[order]

    def rows(self) -> History:
        """The whole history, read event by event."""
        history = History.of(self.events, source=self.source, terms=self.terms)
        return replace(history, known_table=self.table)

    @staticmethod
    def of_columns(
        columns: Columns, events: Events, source: str, terms: AskTerms = lambda given, _: given
    ) -> Scan:
        """The scan of these columns; `terms` completes its terms, given when the log began."""
        context = History.of(events.at(columns.special_at).values(), source=source)
        given = terms(context.terms, columns.began_ns)
        return Scan(source, events, columns, replace(context, terms=given), given)


@dataclass(frozen=True, slots=True)
class Lines:
    """The events of JSON Lines; a place is the offset of a line."""

    opener: Opener
    source: str
    began_ns: int  # time 0 of the columns

    def at(self, places: Ints) -> dict[int, Event]:
        found = {}
        with self.opener() as lines:
            for offset in np.unique(places[places >= 0]).tolist():
                lines.seek(offset)
                event = decode_line(lines.readline(), self.source, 0)
                found[offset] = earlier(event, self.began_ns)
        return found

    def __iter__(self) -> Iterator[Event]:
        with self.opener() as lines:
            for event in with_interned_texts(events_in(lines, self.source)):
                yield earlier(event, self.began_ns)


def scan(
    opener: Opener,
    source: str,
    on_bytes: Callable[[int], object] | None = None,
    terms: AskTerms = lambda given, _: given,
) -> Scan | None:
    """Scans JSON Lines; None if the history has to be read event by event."""
    with opener() as lines:
        columns = read_columns(lines, on_bytes)
    if columns is None:
        return None
    return Scan.of_columns(columns, Lines(opener, source, columns.began_ns), source, terms)


def _holds(columns: Columns) -> Holds:
    """The same holds as in a `History`: from a grant to the release that follows it, or to the
    client's next attempt. Reentrant locks are read event by event instead."""
    table = columns.table
    locking = np.flatnonzero(among(table.f, (Op.ACQUIRE, Op.RELEASE)))
    of = locking[order_by(table.key[locking], table.process[locking])]
    begins = np.flatnonzero((table.f[of] == Op.ACQUIRE) & (table.outcome[of] == Outcome.OK))
    after = np.minimum(begins + 1, len(of) - 1)
    known = (after > begins) & table.same_client(of[begins], of[after])
    granted, ended = of[begins], np.where(known, of[after], -1)
    start = table.end[granted]
    last = columns.seen_last[table.process[granted]] if len(granted) else start
    end = np.where(ended >= 0, table.start[ended], np.maximum(last, start))
    order = order_by(table.key[granted], start)
    return Holds(granted[order], ended[order], start[order], np.maximum(end, start)[order])
