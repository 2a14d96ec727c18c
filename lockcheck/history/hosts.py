"""The hosts on which a history's times were taken, and the history with their clocks set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from lockcheck.history.event import Event, earlier
from lockcheck.history.history import History
from lockcheck.history.model import name_of
from lockcheck.history.scan import Events, Scan
from lockcheck.history.table import NEVER, NOTHING, Ints

Past = TypeVar("Past", History, Scan)


@dataclass(frozen=True, slots=True)
class Hosts:
    names: tuple[str, ...]
    of: Ints  # of each operation: a place in `names`
    named: bool  # by the history; otherwise each client stands for a host of its own


def hosts_of(history: History | Scan) -> Hosts:
    """In the order of their names."""
    if isinstance(history, Scan):
        return _of_columns(history)
    nodes = [operation.node for operation in history.operations]
    named = all(operation.invoke.node for operation in history.operations)
    places = {name: place for place, name in enumerate(sorted(set(nodes)))}
    return Hosts(tuple(places), np.array([places[node] for node in nodes], np.int64), named)


def _of_columns(scan: Scan) -> Hosts:
    node, symbols = scan.columns.node, scan.table.symbols
    unnamed = np.isin(node, (NOTHING, symbols.number("")))
    # A process without a node is a node by itself: see `Operation.node`.
    numbers, of = np.unique(np.where(unnamed, -2 - scan.table.process, node), return_inverse=True)
    names = [
        name_of(symbols.value(-2 - number)) if number < 0 else str(symbols.value(number))
        for number in numbers.tolist()
    ]
    places = {name: place for place, name in enumerate(sorted(set(names)))}
    place = np.array([places[name] for name in names], np.int64)
    return Hosts(tuple(places), place[of], not unnamed.any())


def with_clocks_set(history: Past, later_ns: Mapping[str, int]) -> Past:
    """The history with the times of these hosts that much later."""
    if isinstance(history, Scan):
        return _set_in_columns(history, later_ns)
    return History.of(_in_order(history.events, later_ns), terms=history.terms)


def _later(event: Event, later_ns: Mapping[str, int]) -> Event:
    """The host has the name that `Operation.node` gives it."""
    return earlier(event, -later_ns.get(event.node or name_of(event.process), 0))


def _in_order(events: Iterable[Event], later_ns: Mapping[str, int]) -> list[Event]:
    return sorted((_later(event, later_ns) for event in events), key=lambda event: event.time)


@dataclass(frozen=True, slots=True)
class _Moved:
    """Events in the order of their times, which is no longer that of their places."""

    events: Events
    later_ns: Mapping[str, int]

    def at(self, places: Ints) -> dict[int, Event]:
        found = self.events.at(places).items()
        moved = ((place, _later(event, self.later_ns)) for place, event in found)
        return dict(sorted(moved, key=lambda each: each[1].time))

    def __iter__(self) -> Iterator[Event]:
        return iter(_in_order(self.events, self.later_ns))


def _set_in_columns(scan: Scan, later_ns: Mapping[str, int]) -> Scan:
    hosts, columns, table = hosts_of(scan), scan.columns, scan.table
    later = np.array([later_ns.get(name, 0) for name in hosts.names], np.int64)[hosts.of]
    start, end = table.start + later, np.where(table.end == NEVER, NEVER, table.end + later)
    order = np.argsort(start, kind="stable")
    place = np.argsort(order)
    seen_last = columns.seen_last.copy()
    seen_last[table.process] += later
    moved = replace(
        columns,
        table=replace(table, start=start, end=end).take(order),
        node=columns.node[order],
        invoked_at=columns.invoked_at[order],
        answered_at=columns.answered_at[order],
        seen_last=seen_last,
        numbered=place[columns.numbered],
        based=place[columns.based],
    )
    events = _Moved(scan.events, later_ns)
    return Scan.of_columns(moved, events, scan.source, lambda _, __: scan.terms)
