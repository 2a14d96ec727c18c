"""What is judged, whichever way it was read: event by event, or as columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, cast

import numpy as np

from lockcheck.checker.case import Case
from lockcheck.checker.evidence.promise import ClientEnd
from lockcheck.checker.evidence.promised import Promises
from lockcheck.history import Effect, Event, F, History, Notice, Operation, Terms
from lockcheck.history.scan import Scan
from lockcheck.history.table import NEVER, Ints, Mask, Table


class Subject(Protocol):
    @property
    def terms(self) -> Terms: ...

    @property
    def table(self) -> Table: ...

    @property
    def losses(self) -> list[Event]:
        """Notices to clients that they hold the lock no longer."""

    @property
    def turns(self) -> Sequence[Event]:
        """Notices that an acquire was not granted before."""

    @property
    def ends(self) -> list[ClientEnd]:
        """Faults that ended clients, or servers, with which sessions ended."""

    @property
    def undated(self) -> Mask | None:
        """The grants of sessions whose last heartbeat before the grant is not known."""

    @property
    def promises(self) -> Promises:
        """With the faults that may have disturbed a client."""

    def operations(self, rows: Iterable[int]) -> list[Operation]:
        """The operations of these rows of the table, in the order in which they are named."""

    def around(self, groups: Iterable[Ints]) -> Case:
        """A part of the history in which what these groups of rows are about can be understood."""


@dataclass(frozen=True)
class EventSubject:
    case: Case

    @property
    def terms(self) -> Terms:
        return self.case.terms

    @property
    def table(self) -> Table:
        return self.case.history.table

    @property
    def losses(self) -> list[Event]:
        return [event for event in self.case.history.events if event.f == Notice.LOST]

    @property
    def turns(self) -> Sequence[Event]:
        return self.case.history.turns

    @property
    def ends(self) -> list[ClientEnd]:
        processes: defaultdict[str, set[int | str]] = defaultdict(set)
        for operation in self.case.operations:
            processes[operation.node].add(operation.owner)
        servers = self.terms.lock_nodes if self.terms.ends_with else ()
        processes.update(dict.fromkeys(servers, set().union(*processes.values())))
        ended = [fault for fault in self.case.history.faults if fault.effect is Effect.ENDS]
        programs = _ends_of_programs(self.case.history, processes)
        return programs + [
            ClientEnd(frozenset(processes[node]), fault.start_ns, fault.worked_by_ns or NEVER)
            for fault in ended
            for node in fault.nodes
            if node in processes
        ]

    @property
    def undated(self) -> Mask | None:
        if not self.terms.session:
            return None
        return np.array([_is_undated(operation) for operation in self.case.operations], np.bool_)

    @property
    def promises(self) -> Promises:
        return self.case.attribution.promises

    def operations(self, rows: Iterable[int]) -> list[Operation]:
        return [self.case.operations[row] for row in rows]

    def around(self, groups: Iterable[Ints]) -> Case:  # noqa: ARG002 - all of it is at hand
        return self.case


def _is_undated(operation: Operation) -> bool:
    answer = operation.answer
    return operation.f == F.ACQUIRE and answer is not None and answer.valid_ms is None


def _ends_of_programs(
    history: History, processes: Mapping[str, Iterable[int | str]]
) -> list[ClientEnd]:
    """`processes`: by node, those whose holds its program had."""
    return [
        ClientEnd(
            frozenset(processes.get(event.node or "", ())), event.since or 0, event.time, True
        )
        for event in history.programs_ended
    ]


@dataclass(frozen=True)
class ColumnSubject:
    scan: Scan

    @property
    def terms(self) -> Terms:
        return self.scan.terms

    @property
    def table(self) -> Table:
        return self.scan.table

    @property
    def losses(self) -> list[Event]:
        return [event for event in self.scan.context.events if event.f == Notice.LOST]

    @property
    def turns(self) -> Sequence[Event]:
        return self.scan.context.turns

    @property
    def ends(self) -> list[ClientEnd]:
        """Of programs alone: histories with sessions are judged event by event."""
        scan, table = self.scan, self.scan.table
        processes = {
            name: {
                cast("int | str", table.symbols.value(number))
                for number in np.unique(table.owner[scan.columns.node == node]).tolist()
            }
            for name in {event.node or "" for event in scan.context.programs_ended}
            for node in [table.symbols.number(name)]
        }
        return _ends_of_programs(scan.context, processes)

    @property
    def undated(self) -> Mask | None:
        return None

    @cached_property
    def promises(self) -> Promises:
        return Promises(replace(self.scan.context, known_clients=self.scan.clients))

    def operations(self, rows: Iterable[int]) -> list[Operation]:
        return self.scan.operations(rows)

    def around(self, groups: Iterable[Ints]) -> Case:
        return Case(self.scan.around(groups))
