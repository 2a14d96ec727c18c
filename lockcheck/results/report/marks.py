"""Marks of a moment: operations, vain attempts, and the operations in evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockcheck.checker.finding import Code, Culprit, Judgement
from lockcheck.history import F, Operation
from lockcheck.results.report.choice import merged, within
from lockcheck.results.report.columns import Table, append, us
from lockcheck.results.report.sheet import LONGEST_TEXT, MOST_MARKS, Sheet
from lockcheck.results.story.incidents import (
    Identity,
    Incident,
    evidence_of,
    foreign_releases,
    identity,
    losses,
)
from lockcheck.results.story.narrative import Narrative
from lockcheck.words import LOCKING, call, label

LONGEST_LABEL = 80
LONGEST_MARK_OF_MANY = 16  # where there are so many that they make up most of the page
MANY_OPERATIONS = 5_000
MOST_EVIDENCE = 100  # of one incident

# How the script draws an operation: indexes of its list STATE.
_ACCEPTED, _REFUSED, _STALE, _UNKNOWN, _READ, _OVERWROTE, _LOST, _UNAWARES, _TOOK = range(9)
KINDS = ("accepted", "refused", "stale", "unknown", "read", "overwrote", "lost", "unawares", "took")


def marks(sheet: Sheet, narrative: Narrative) -> Table:
    """Operations under the lock, as points on the lane of the client that sent them."""
    names = (
        *("lane", "key", "op", "state", "start", "end"),
        *("number", "value", "base", "token", "why", "call"),
    )
    table: Table = {name: [] for name in names}
    harmful = _harmful(narrative.judgement, sheet.incidents)
    numbers = narrative.numbers
    many = len(sheet.history.operations) > MANY_OPERATIONS
    longest = LONGEST_MARK_OF_MANY if many else LONGEST_TEXT
    for operation in _marked(sheet):
        invoke, answer = operation.invoke, operation.answer
        value = (answer and answer.value) if operation.f == F.READ else invoke.value
        other = operation.f not in {F.READ, F.WRITE, F.RELEASE}
        values = (
            sheet.lanes[operation.node],
            sheet.key(operation.key),
            sheet.number(operation),
            _state(operation, harmful),
            us(operation.start_ns),
            us(answer.time) if answer else -1,
            numbers.of(operation) or -1,
            sheet.text(value, longest),
            sheet.text(invoke.base, longest),
            -1 if invoke.token is None else invoke.token,
            sheet.text(answer.error if answer else None),
            sheet.text(call(operation)) if other else -1,
        )
        append(table, names, values)
    return table


def _marked(sheet: Sheet) -> Sequence[Operation]:
    """Of too many, reads far from any finding are omitted: a read changes nothing."""
    foreign = {identity(release) for release in foreign_releases(sheet.incidents)}
    operations = [
        o for o in sheet.history.operations if o.f not in LOCKING or identity(o) in foreign
    ]
    drawn = [o for o in operations if o.node in sheet.lanes]
    if len(sheet.history.operations) > MOST_MARKS:
        near = merged(sheet.windows)
        drawn = [o for o in drawn if o.f != F.READ or within(near, o.start_ns)]
    sheet.omitted += len(operations) - len(drawn)
    return sheet.choose(drawn, lambda operation: operation.start_ns)


def tries(sheet: Sheet) -> Table:
    names = ("lane", "key", "op", "start")
    table: Table = {name: [] for name in names}
    attempts = [
        o
        for o in sheet.history.operations
        if o.f == F.ACQUIRE and not o.ok and o.node in sheet.lanes
    ]
    for operation in sheet.choose(attempts, lambda operation: operation.start_ns):
        values = (
            sheet.lanes[operation.node],
            sheet.key(operation.key),
            sheet.number(operation),
            us(operation.start_ns),
        )
        append(table, names, values)
    return table


def evidence(sheet: Sheet) -> Table:
    """The operations of findings that no hold can show, each with its whole length."""
    names = ("lane", "key", "op", "start", "end", "text", "finding")
    table: Table = {name: [] for name in names}
    for number, incident in enumerate(sheet.incidents):
        for operation in evidence_of(incident)[:MOST_EVIDENCE]:
            if operation.node not in sheet.lanes:
                continue
            sheet.at_fault.add(operation.node)
            values = (
                sheet.lanes[operation.node],
                sheet.key(operation.key),
                sheet.number(operation),
                us(operation.start_ns),
                us(operation.answer.time) if operation.answer else -1,
                sheet.text(label(operation), LONGEST_LABEL),
                number,
            )
            append(table, names, values)
    return table


def _harmful(judgement: Judgement, incidents: Iterable[Incident]) -> dict[Identity, int]:
    """The state of writes that were lost, overwrote others or were stale, and of releases that
    took another client's lock away; where several apply, the worst."""
    found: dict[Identity, int] = {}
    lost = losses(judgement.of(Code.LOST_UPDATE))
    for loss in lost:
        found.update((identity(write), _LOST) for write in loss.lost)
    blamed_for = _blamed_for(judgement)
    for loss in lost:
        blamed = loss.overwriting.process in blamed_for.get(identity(loss.overwriting), ())
        found[identity(loss.overwriting)] = _OVERWROTE if blamed else _UNAWARES
    found.update((identity(f.operations[-1]), _STALE) for f in judgement.of(Code.STALE_WRITE))
    return found | {identity(r): _TOOK for r in foreign_releases(incidents)}


def _blamed_for(judgement: Judgement) -> dict[Identity, set[int | str]]:
    """The processes to blame for each write that overwrote others: not always its own."""
    blamed: dict[Identity, set[int | str]] = {}
    for finding in judgement.of(Code.LOST_UPDATE):
        writes, blame = [o for o in finding.operations if o.f == F.WRITE], finding.blame
        if not writes or blame.who not in (Culprit.HOLDER, Culprit.CLIENT):
            continue
        process = writes[-1].process
        if blame.release is not None:
            process = blame.release.process
        elif finding.holds and (blame.who is Culprit.HOLDER or blame.by_ns):
            process = finding.holds[0].process
        blamed.setdefault(identity(writes[-1]), set()).add(process)
    return blamed


def _state(operation: Operation, harmful: dict[Identity, int]) -> int:
    if operation.f == F.READ:
        return _READ
    if (state := harmful.get(identity(operation))) is not None:
        return state
    if operation.ok:
        return _ACCEPTED
    return _REFUSED if operation.failed else _UNKNOWN
