"""A whole history, as judges are given it."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lockcheck.history.assembly import Assembly
from lockcheck.history.event import Event, Notice, Terms
from lockcheck.history.files import Position, read_events
from lockcheck.history.given_up import given_up
from lockcheck.history.model import FaultSpan, Hold, LedgerEntry, Operation, Stall

if TYPE_CHECKING:  # numpy is slow to import, and clients of a run do not need it
    from lockcheck.history.table import Table


@dataclass(frozen=True)
class History:
    terms: Terms
    events: tuple[Event, ...]
    operations: tuple[Operation, ...]
    holds: tuple[Hold, ...]
    faults: tuple[FaultSpan, ...]
    stalls: tuple[Stall, ...]
    clock_steps: tuple[Event, ...]
    clocks: tuple[Event, ...]
    ledger: tuple[LedgerEntry, ...]
    queued: tuple[Event, ...] = ()  # notices of clients that joined the lock's queue
    turns: tuple[Event, ...] = ()  # notices of clients whose turn came
    programs_ended: tuple[Event, ...] = ()  # of programs that clients work through
    quiet_ns: int | None = None  # when all faults were healed and clients went on
    known_clients: frozenset[str] = frozenset()  # of a part of a history: those of the whole
    known_rows: tuple[int, ...] = field(default=(), compare=False)  # likewise, of its operations
    known_table: Table | None = field(default=None, compare=False)  # if it exists already

    @cached_property
    def clients(self) -> frozenset[str]:
        """The nodes of all operations."""
        return self.known_clients or frozenset(operation.node for operation in self.operations)

    def number_of(self, operation: Operation) -> int | None:
        """How a reader finds it again: 512 is the 512th operation that clients invoked, as
        `jq -c 'select(.type == "invoke" and .process != "nemesis")' history.jsonl | sed -n 512p`
        shows it. None: it is not in this history."""
        first = bisect_left(self.operations, operation.start_ns, key=lambda o: o.start_ns)
        for row in range(first, len(self.operations)):
            other = self.operations[row]
            if other == operation:
                return (self.known_rows[row] if self.known_rows else row) + 1
            if other.start_ns > operation.start_ns:
                break
        return None

    @property
    def end_ns(self) -> int:
        return self.events[-1].time if self.events else 0

    @cached_property
    def table(self) -> Table:
        """The same operations as columns, one row per operation."""
        from lockcheck.history.table import Table

        return self.known_table or Table.of(self.operations)

    @staticmethod
    def of(
        events: Iterable[Event],
        *,
        source: str = "history",
        place: Position | None = None,
        terms: Terms | None = None,
    ) -> History:
        """The history of events in the order of their times. Errors name the line of `place`, which
        their reader updates; `terms` replace the terms that the events contain."""
        first = Assembly(source, place, given_terms=terms)
        first.read(events)
        if not (first.terms.partial and first.terms.reentrant):
            return _made_of(first)
        again = Assembly(source, given_up=given_up(first.operations), given_terms=first.terms)
        again.read(first.events)
        return _made_of(again)


def _made_of(assembly: Assembly) -> History:
    return History(
        terms=assembly.terms,
        events=tuple(assembly.events),
        operations=tuple(assembly.operations),
        holds=tuple(assembly.holding.holds),
        faults=tuple(assembly.faults.spans()),
        stalls=tuple(assembly.stalls),
        clock_steps=tuple(assembly.beside[Notice.CLOCK_STEP]),
        clocks=tuple(assembly.beside[Notice.CLOCKS]),
        ledger=tuple(assembly.ledger),
        queued=tuple(assembly.queued),
        turns=tuple(assembly.turns),
        programs_ended=tuple(assembly.beside[Notice.PROGRAM]),
        quiet_ns=assembly.faults.quiet_ns,
    )


def read_history(path: str | os.PathLike[str]) -> History:
    place = Position()
    read = read_events(Path(path), place=place, follow=True)
    return History.of(read, source=str(path), place=place)
