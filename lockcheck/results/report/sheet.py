"""What all parts of the timeline share: lanes, numbered texts, and a count of what is omitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from lockcheck.history import FaultSpan, History, Operation
from lockcheck.results.report.choice import chosen
from lockcheck.results.report.columns import Numbered
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.steps.stalls import own_stalls
from lockcheck.words import natural, plain

T = TypeVar("T")

LONGEST_TEXT = 40
# Of more marks a picture shows only how dense they are: reads are omitted first, then marks that
# are far from any finding.
MOST_MARKS = 20_000
LANES_AT_ONCE = 12  # more do not fit a screen
MOST_LANES = 48  # histories of other tools have many processes: each unknown answer ends one


class Sheet:
    def __init__(
        self, history: History, incidents: Sequence[Incident], windows: Sequence[range]
    ) -> None:
        self.history = history
        self.incidents = incidents
        self.windows = windows
        self.keys = Numbered()
        self.texts = Numbered()
        self.omitted = 0
        self.stalls = own_stalls(history, history.stalls)
        self.rows: dict[str, int] = {}  # of lanes with more than one
        self.at_fault: set[str] = set()  # lanes with evidence
        about = list(dict.fromkeys(node for incident in incidents for node in _nodes(incident)))
        clients = sorted({*about, *(o.node for o in history.operations)}, key=natural)
        self._clients, self.unfolded = _drawn(about, clients)
        self.hidden = len(clients) - len(self._clients)
        others = {node for f in history.faults for node in places(f)}
        others |= {stall.node for stall in self.stalls}
        servers = sorted(others - set(clients), key=natural)[:MOST_LANES]
        self.lanes = {node: number for number, node in enumerate([*self._clients, *servers])}

    def choose(self, items: Sequence[T], start_ns: Callable[[T], int]) -> Sequence[T]:
        picked = chosen(items, MOST_MARKS, self.windows, start_ns)
        self.omitted += len(items) - len(picked)
        return picked

    def text(self, value: object, longest: int = LONGEST_TEXT) -> int:
        return -1 if value is None else self.texts.number(plain(value, longest))

    def number(self, operation: Operation | None) -> int:
        """-1: there is none, or the history has it not."""
        return -1 if operation is None else self.history.number_of(operation) or -1

    def key(self, key: str) -> int:
        return self.keys.number(plain(key))

    def described(self) -> list[dict[str, object]]:
        clients, held = set(self._clients), int(bool(self.history.holds))
        return [
            {
                "name": plain(node, 24) or "cluster",
                "client": node in clients,
                "rows": self.rows.get(node, held),
                "evidence": node in self.at_fault,
            }
            for node in self.lanes
        ]


def places(fault: FaultSpan) -> tuple[str, ...]:
    """The lanes that it is drawn in; a fault that struck no node in particular has its own."""
    return fault.nodes or ("",)


def faults_drawn(sheet: Sheet) -> list[FaultSpan]:
    faults = sheet.history.faults[:MOST_MARKS]
    return [fault for fault in faults if any(node in sheet.lanes for node in places(fault))]


def _drawn(about: list[str], clients: list[str]) -> tuple[list[str], int]:
    """The clients that have a lane, the worst first, and how many of them show at first."""
    if len(clients) <= LANES_AT_ONCE:
        return clients, len(clients)
    return list(dict.fromkeys([*about, *clients]))[:MOST_LANES], LANES_AT_ONCE


def _nodes(incident: Incident) -> Iterator[str]:
    yield from (hold.node for hold in incident.holds)
    yield from (o.node for f in incident.findings for o in f.operations)
