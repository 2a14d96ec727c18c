"""The history as the timeline's script wants it: columns instead of objects, times in µs.

A column repeats no names, so ten thousand operations stay well below a megabyte. Texts that occur
again and again (marks, reasons) are stored once and referred to by their number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from lockcheck.checker.finding import Code, Judgement
from lockcheck.history import Ending, F, History, Hold, Operation
from lockcheck.history.event import STORAGE
from lockcheck.results.report.columns import (
    Numbered,
    Table,
    append,
    or_none,
    safe_in_script,
    us,
)
from lockcheck.results.story import (
    Identity,
    Incident,
    fault_name,
    incident_title,
    natural,
    operation_identity,
    own_stalls,
    plain,
    span,
    stale_writes,
)

LONGEST_TEXT = 40
LONGEST_MARK_OF_MANY = 16  # where there are so many that they make up most of the page
MANY_OPERATIONS = 5_000
# Beyond this many marks a picture shows no more than its density: reads go first, then attempts.
MOST_MARKS = 20_000
MOST_ROWS_PER_LANE = 4

# What the script draws of a write: the numbers are the script's STATE list.
_ACCEPTED, _REFUSED, _STALE, _UNKNOWN, _READ = range(5)
_MARKS = ("accepted", "refused", "stale", "unknown", "read")
_ENDINGS = list(Ending)


@dataclass(frozen=True, slots=True)
class Timeline:
    json: str  # safe inside a script element, whatever the history holds
    kinds: frozenset[str]  # what occurs on it, for the legend


def timeline(
    history: History, judgement: Judgement, told: Iterable[Incident], windows: Iterable[range]
) -> Timeline:
    drawing = _Drawing(history)
    holds, marks, overlaps = drawing.holds(), drawing.marks(judgement), drawing.overlaps(judgement)
    faults, stalls = drawing.faults(), drawing.stalls()
    data = {
        "end": us(last_moment_ns(history)),
        "holds": holds,
        "marks": marks,
        "tries": drawing.tries(),
        "faults": faults,
        "stalls": stalls,
        "overlaps": overlaps,
        "findings": [
            {
                "from": us(window.start),
                "to": us(window.stop),
                "title": incident_title(incident),
                "key": drawing.keys.number(plain(incident.main.key)),
                "effect": incident.effect.value,
            }
            for incident, window in zip(told, windows, strict=True)
        ],
        "omitted": drawing.omitted,
        "endings": [ending.value for ending in _ENDINGS],
        # last: the tables above number what they mention
        "lanes": drawing.lanes(),
        "keys": drawing.keys.texts,
        "texts": drawing.texts.texts,
    }
    kinds = {_MARKS[state] for state in marks["state"]}
    kinds |= {"unproven" if fault.proven_ns is None else "fault" for fault in history.faults}
    kinds |= _kinds_of_holds(holds)
    kinds |= {"overlap"} if overlaps["key"] else set()
    kinds |= {"stall"} if stalls else set()
    return Timeline(safe_in_script(msgspec.json.encode(data).decode()), frozenset(kinds))


def _kinds_of_holds(holds: Table) -> set[str]:
    leases = [
        end - until for end, until in zip(holds["end"], holds["until"], strict=True) if until >= 0
    ]
    kinds = {"hold"} if holds["end"] else set()
    if any(over > 0 for over in leases):
        kinds |= {"outlived", "lease"}
    return kinds


def last_moment_ns(history: History) -> int:
    """When the run ended: the storage testifies afterwards, maybe much later."""
    during = (event.time for event in reversed(history.events) if event.process != STORAGE)
    return next(during, history.end_ns)


class _Drawing:
    def __init__(self, history: History) -> None:
        self.history = history
        self.keys = Numbered()
        self.texts = Numbered()
        self.omitted = 0
        self._end_ns = last_moment_ns(history)
        self._stalls = own_stalls(history, history.stalls)
        self._rows: dict[str, int] = {}
        self._clients = sorted({o.node for o in history.operations}, key=natural)
        others = {f.node for f in history.faults} | {s.node for s in self._stalls}
        servers = sorted(others - set(self._clients), key=natural)
        self._lanes = {node: number for number, node in enumerate([*self._clients, *servers])}

    def lanes(self) -> list[dict[str, object]]:
        clients = set(self._clients)
        return [
            {
                "name": plain(node, 24) or "cluster",
                "client": node in clients,
                "rows": self._rows.get(node, 1),
            }
            for node in self._lanes
        ]

    def _text(self, value: object, longest: int = LONGEST_TEXT) -> int:
        return -1 if value is None else self.texts.number(plain(value, longest))

    def holds(self) -> Table:
        names = ("lane", "row", "key", "asked", "start", "end", "until", "gone", "token", "how")
        table: Table = {name: [] for name in names}
        busy: dict[str, list[int]] = {}
        for hold in self.history.holds:
            release = hold.release
            gone = hold.end_ns if release is None else (release.end_ns or self._end_ns)
            values = (
                self._lanes[hold.node],
                self._row(hold, busy.setdefault(hold.node, [])),
                self.keys.number(plain(hold.key)),
                us(hold.acquire.start_ns),
                us(hold.start_ns),
                us(hold.end_ns),
                or_none(hold.promised_until_ns(self.history.terms.ttl_ms)),
                us(gone),
                -1 if hold.token is None else hold.token,
                _ENDINGS.index(hold.ending),
            )
            append(table, names, values)
        return table

    def _row(self, hold: Hold, busy_until: list[int]) -> int:
        """A node that holds several locks at once draws them below each other."""
        for row, until_ns in enumerate(busy_until):
            if until_ns <= hold.start_ns:
                busy_until[row] = hold.end_ns
                return row
        if len(busy_until) == MOST_ROWS_PER_LANE:
            return MOST_ROWS_PER_LANE - 1
        busy_until.append(hold.end_ns)
        self._rows[hold.node] = len(busy_until)
        return len(busy_until) - 1

    def marks(self, judgement: Judgement) -> Table:
        """Writes and reads, as points on the lane of the client that sent them."""
        names = ("lane", "key", "state", "start", "end", "seq", "value", "base", "token", "why")
        table: Table = {name: [] for name in names}
        stale = stale_writes(judgement.findings)
        many = len(self.history.operations) > MANY_OPERATIONS
        longest = LONGEST_MARK_OF_MANY if many else LONGEST_TEXT
        reads_too = len(self.history.operations) <= MOST_MARKS
        for operation in self.history.operations:
            if operation.f not in {F.READ, F.WRITE}:
                continue
            if operation.f == F.READ and not reads_too:
                self.omitted += 1
                continue
            invoke, answer = operation.invoke, operation.answer
            value = invoke.value if operation.f == F.WRITE else (answer and answer.value)
            values = (
                self._lanes[operation.node],
                self.keys.number(plain(operation.key)),
                _state(operation, stale),
                us(operation.start_ns),
                us(answer.time) if answer else -1,
                -1 if answer is None or answer.seq is None else answer.seq,
                self._text(value, longest),
                self._text(invoke.base, longest),
                -1 if invoke.token is None else invoke.token,
                self._text(answer.error if answer else None),
            )
            append(table, names, values)
        return table

    def tries(self) -> Table:
        names = ("lane", "key", "start")
        table: Table = {name: [] for name in names}
        attempts = [o for o in self.history.operations if o.f == F.ACQUIRE and not o.ok]
        for operation in attempts[:MOST_MARKS]:
            key = self.keys.number(plain(operation.key))
            append(table, names, (self._lanes[operation.node], key, us(operation.start_ns)))
        self.omitted += max(0, len(attempts) - MOST_MARKS)
        return table

    def faults(self) -> list[dict[str, object]]:
        return [
            {
                "lane": self._lanes[fault.node],
                "name": plain(fault.name, 24),
                "title": fault_name(fault),
                "start": us(fault.start_ns),
                "proven": or_none(fault.proven_ns),
                "healed": or_none(fault.healed_ns),
                "proof": plain(fault.proof or fault.why_unproven, 160),
            }
            for fault in self.history.faults
        ]

    def stalls(self) -> list[dict[str, object]]:
        return [
            {
                "lane": self._lanes[stall.node],
                "start": us(max(0, stall.start_ns)),
                "end": us(stall.end_ns),
                "long": span(stall.end_ns - stall.start_ns),
            }
            for stall in self._stalls
        ]

    def overlaps(self, judgement: Judgement) -> Table:
        names = ("key", "first", "second", "start", "end", "counts")
        table: Table = {name: [] for name in names}
        for finding in judgement.findings:
            if finding.code is not Code.OVERLAP or len(finding.holds) < 2:
                continue
            first, second = finding.holds[:2]
            start_ns = max(first.start_ns, second.start_ns)
            end_ns = max(start_ns, min(first.end_ns, second.end_ns))
            values = (
                self.keys.number(plain(finding.key)),
                self._lanes[first.node],
                self._lanes[second.node],
                us(start_ns),
                us(end_ns),
                int(finding.effect.value == "violation"),
            )
            append(table, names, values)
        return table


def _state(operation: Operation, stale: frozenset[Identity]) -> int:
    if operation.f == F.READ:
        return _READ
    if operation_identity(operation) in stale:
        return _STALE
    if operation.ok:
        return _ACCEPTED
    return _REFUSED if operation.failed else _UNKNOWN
