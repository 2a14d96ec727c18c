"""What happens at a moment: reads, writes and the like, attempts, and what is in evidence."""

from __future__ import annotations

from collections.abc import Sequence

from lockcheck.checker.finding import Judgement
from lockcheck.history import F, Operation
from lockcheck.results import story
from lockcheck.results.report.choice import merged, within
from lockcheck.results.report.columns import Table, append, us
from lockcheck.results.report.sheet import LONGEST_TEXT, MOST_MARKS, Sheet
from lockcheck.results.story import Identity, operation_identity, stale_writes

LONGEST_LABEL = 80
LONGEST_MARK_OF_MANY = 16  # where there are so many that they make up most of the page
MANY_OPERATIONS = 5_000
MOST_EVIDENCE = 100  # of one incident

# What the script draws of a write: the numbers are the script's STATE list.
_ACCEPTED, _REFUSED, _STALE, _UNKNOWN, _READ = range(5)
KINDS = ("accepted", "refused", "stale", "unknown", "read")


def marks(sheet: Sheet, judgement: Judgement) -> Table:
    """Reads, writes and the like, as points on the lane of the client that sent them."""
    names = ("lane", "key", "state", "start", "end", "seq", "value", "base", "token", "why")
    table: Table = {name: [] for name in (*names, "call")}
    stale = stale_writes(judgement.findings)
    many = len(sheet.history.operations) > MANY_OPERATIONS
    longest = LONGEST_MARK_OF_MANY if many else LONGEST_TEXT
    for operation in _marked(sheet):
        invoke, answer = operation.invoke, operation.answer
        value = (answer and answer.value) if operation.f == F.READ else invoke.value
        other = operation.f not in {F.READ, F.WRITE}
        values = (
            sheet.lanes[operation.node],
            sheet.key(operation.key),
            _state(operation, stale),
            us(operation.start_ns),
            us(answer.time) if answer else -1,
            -1 if answer is None or answer.seq is None else answer.seq,
            sheet.text(value, longest),
            sheet.text(invoke.base, longest),
            -1 if invoke.token is None else invoke.token,
            sheet.text(answer.error if answer else None),
            sheet.text(story.call(operation)) if other else -1,
        )
        append(table, (*names, "call"), values)
    return table


def _marked(sheet: Sheet) -> Sequence[Operation]:
    """Far from any finding a read goes first: a read changes nothing."""
    operations = [o for o in sheet.history.operations if o.f not in story.LOCKING]
    drawn = [o for o in operations if o.node in sheet.lanes]
    if len(sheet.history.operations) > MOST_MARKS:
        near = merged(sheet.windows)
        drawn = [o for o in drawn if o.f != F.READ or within(near, o.start_ns)]
    sheet.omitted += len(operations) - len(drawn)
    return sheet.choose(drawn, lambda operation: operation.start_ns)


def tries(sheet: Sheet) -> Table:
    names = ("lane", "key", "start")
    table: Table = {name: [] for name in names}
    attempts = [
        o
        for o in sheet.history.operations
        if o.f == F.ACQUIRE and not o.ok and o.node in sheet.lanes
    ]
    for operation in sheet.choose(attempts, lambda operation: operation.start_ns):
        key = sheet.key(operation.key)
        append(table, names, (sheet.lanes[operation.node], key, us(operation.start_ns)))
    return table


def evidence(sheet: Sheet) -> Table:
    """The operations at fault of what no hold can show, each with its whole length."""
    names = ("lane", "key", "start", "end", "text", "finding")
    table: Table = {name: [] for name in names}
    for number, incident in enumerate(sheet.incidents):
        for operation in story.evidence_of(incident)[:MOST_EVIDENCE]:
            if operation.node not in sheet.lanes:
                continue
            sheet.at_fault.add(operation.node)
            values = (
                sheet.lanes[operation.node],
                sheet.key(operation.key),
                us(operation.start_ns),
                us(operation.answer.time) if operation.answer else -1,
                sheet.text(story.label(operation), LONGEST_LABEL),
                number,
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
