"""What is judged, whichever way it was read: event by event, or as columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from lockcheck.history import Event, History, Notice, Operation, Terms
from lockcheck.history.scan import Scan
from lockcheck.history.table import Ints, Table


class Subject(Protocol):
    @property
    def terms(self) -> Terms: ...

    @property
    def table(self) -> Table: ...

    @property
    def shared(self) -> bool:
        """Somebody let in others on purpose."""

    @property
    def losses(self) -> list[Event]:
        """Notices to clients that they hold the lock no longer."""

    def operations(self, rows: Iterable[int]) -> list[Operation]:
        """The operations of these rows of the table, in the order in which they are named."""

    def around(self, groups: Iterable[Ints]) -> History:
        """A history in which what these groups of rows are about can be understood."""


@dataclass(frozen=True)
class Whole:
    history: History

    @property
    def terms(self) -> Terms:
        return self.history.terms

    @cached_property
    def table(self) -> Table:
        return Table.of(self.history.operations)

    @cached_property
    def shared(self) -> bool:
        return any(operation.invoke.shared for operation in self.history.operations)

    @property
    def losses(self) -> list[Event]:
        return [event for event in self.history.events if event.f == Notice.LOST]

    def operations(self, rows: Iterable[int]) -> list[Operation]:
        return [self.history.operations[row] for row in rows]

    def around(self, groups: Iterable[Ints]) -> History:  # noqa: ARG002 - all of it is at hand
        return self.history


@dataclass(frozen=True)
class Glimpse:
    scan: Scan
    shared: bool = False  # the reader of columns leaves shared locks to the other one

    @property
    def terms(self) -> Terms:
        return self.scan.terms

    @property
    def table(self) -> Table:
        return self.scan.table

    @property
    def losses(self) -> list[Event]:
        return [event for event in self.scan.beside.events if event.f == Notice.LOST]

    def operations(self, rows: Iterable[int]) -> list[Operation]:
        return self.scan.operations(rows)

    def around(self, groups: Iterable[Ints]) -> History:
        return self.scan.around(groups)
