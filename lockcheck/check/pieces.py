"""The parts of a history that can be left out, so that the rest is a valid history.

A lock that is right still is without a whole hold, or a refused request; without a release alone it
would not be. So a hold's operations stay together, with the storage's entries for them.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from lockcheck.history import Event, F, History, Notice, Operation
from lockcheck.history.event import NEMESIS, STORAGE

LOCKING = frozenset({F.ACQUIRE, F.RELEASE})
Name = tuple[int | str, int, str]  # of an operation: process, start, kind


def name_of(operation: Operation) -> Name:
    return operation.process, operation.start_ns, operation.f


@dataclass(eq=False, slots=True)
class Piece:
    """Events that are left out together. Without operations: a fault, a stall, a clock."""

    start_ns: int
    end_ns: int
    key: str | None = None
    places: list[int] = field(default_factory=list)  # of its events in the history
    operations: list[Operation] = field(default_factory=list)
    needs: set[Piece] = field(default_factory=set)  # without these it would make no sense

    def add(self, place: int, event: Event) -> None:
        self.places.append(place)
        self.end_ns = max(self.end_ns, event.time)


def pieces_of(history: History, *, strict: bool) -> list[Piece]:
    """`strict`: for findings that no order explains. A renewal then stays with its hold, and
    pieces need others, so that an order of the whole would be one of a part."""
    taking = _Taking(history, strict)
    for place, event in enumerate(history.events):
        if event.f != Notice.TERMS:
            taking.take(place, event)
    for piece, needed in _needs(history, taking.of) if strict else ():
        piece.needs.add(needed)
    return taking.pieces


@dataclass(slots=True)
class _Taking:
    """Takes a history apart, event by event."""

    history: History
    strict: bool
    pieces: list[Piece] = field(default_factory=list)
    of: dict[Name, Piece] = field(default_factory=dict)
    _invoked: dict[int, Operation] = field(init=False)
    _answered: dict[int, Operation] = field(init=False)
    _held: dict[tuple[int | str, str], list[Piece]] = field(default_factory=dict)
    _pending: dict[int | str, Piece] = field(default_factory=dict)
    _faults: dict[int, Piece] = field(default_factory=dict)
    _in_ledger: dict[Hashable, Piece] = field(default_factory=dict)

    def __post_init__(self) -> None:
        operations = self.history.operations
        self._invoked = {id(o.invoke): o for o in operations}
        self._answered = {id(o.answer): o for o in operations if o.answer is not None}

    def take(self, place: int, event: Event) -> None:
        if (operation := self._invoked.get(id(event))) is not None:
            piece = self.of[name_of(operation)] = self._piece_of(operation)
            piece.operations.append(operation)
            self._pending[operation.process] = piece
            self._in_ledger.update(dict.fromkeys(_marks(operation), piece))
        elif (operation := self._answered.get(id(event))) is not None:
            piece = self.of[name_of(operation)]
        else:
            piece = self._beside(event)
        piece.add(place, event)

    def _new(self, event: Event, key: str | None = None) -> Piece:
        self.pieces.append(Piece(event.time, event.time, key))
        return self.pieces[-1]

    def _piece_of(self, operation: Operation) -> Piece:
        """Of a lock's operation, the hold that it begins or ends; else one of its own."""
        held = self._held.setdefault((operation.owner, operation.key), [])
        if operation.f == F.RELEASE and held:
            return held.pop()
        if operation.f == F.RENEW and held and self.strict:
            return held[-1]
        if operation.f != F.ACQUIRE or operation.failed:
            return self._new(operation.invoke, operation.key)
        if not self.history.terms.reentrant:
            held.clear()
        held.append(held[-1] if held else self._new(operation.invoke, operation.key))
        return held[-1]

    def _beside(self, event: Event) -> Piece:
        """The piece of an event that is no operation."""
        if event.process == NEMESIS and event.fault is not None:
            if event.fault not in self._faults:
                self._faults[event.fault] = self._new(event)
            return self._faults[event.fault]
        if event.process == STORAGE:
            served = (self._in_ledger.get(mark) for mark in _marks_of_entry(event))
            return next(filter(None, served), None) or self._new(event)
        if event.f == Notice.LOST and (held := self._held.get((event.process, event.key or ""))):
            return held[-1]
        if event.f in (Notice.QUEUED, Notice.TURN) and event.process in self._pending:
            return self._pending[event.process]
        return self._new(event)


def _marks(operation: Operation) -> Iterator[Hashable]:
    """By which the storage's ledger entry of the operation is found: its number, or its value."""
    answer = operation.answer
    if answer is not None and answer.seq is not None:
        yield operation.key, answer.seq
    elif operation.f == F.WRITE:
        yield operation.owner, operation.key, _text(operation.invoke.value)


def _marks_of_entry(event: Event) -> Iterator[Hashable]:
    yield event.key or "", event.seq
    yield event.of, event.key or "", _text(event.value)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _needs(history: History, of: dict[Name, Piece]) -> Iterator[tuple[Piece, Piece]]:
    """Of a value that was read, each write of it; of a number or a set, all that changed it; of a
    grant, the releases before it whose own grants the history lacks."""
    by_key: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in history.operations:
        by_key[operation.key].append(operation)
    for operations in by_key.values():
        stored = [o for o in operations if o.f not in (*LOCKING, F.RENEW)]
        simple = {o.f for o in stored} <= {F.READ, F.WRITE, F.CAS}
        pairs = [*(_of_register(stored) if simple else _of_others(stored))]
        pairs += _in_turn([o for o in operations if o.f in LOCKING and _counts(o, of)])
        yield from ((of[name_of(a)], of[name_of(b)]) for a, b in pairs if a is not b)


def _counts(operation: Operation, of: dict[Name, Piece]) -> bool:
    """Whether it is a grant, or a release without one."""
    if operation.f == F.ACQUIRE:
        return operation.ok
    return not operation.failed and all(o.f != F.ACQUIRE for o in of[name_of(operation)].operations)


def _in_turn(operations: list[Operation]) -> Iterator[tuple[Operation, Operation]]:
    """Each needs the latest release before it."""
    before: Operation | None = None
    for operation in operations:
        if before is not None:
            yield operation, before
        if operation.f == F.RELEASE:
            before = operation


def _of_register(operations: list[Operation]) -> Iterator[tuple[Operation, Operation]]:
    writers: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.f != F.READ and not operation.failed:
            writers[_text(_written(operation))].append(operation)
    for operation in operations:
        if operation.ok and operation.f != F.WRITE:
            yield from ((operation, write) for write in writers[_text(_seen(operation))])


def _written(operation: Operation) -> object:
    value = operation.invoke.value
    return value[-1] if operation.f == F.CAS and isinstance(value, list | tuple) else value


def _seen(operation: Operation) -> object:
    value = operation.invoke.value
    if operation.f == F.CAS:
        return value[0] if isinstance(value, list | tuple) and value else None
    return operation.answer.value if operation.answer else None


def _of_others(operations: list[Operation]) -> Iterator[tuple[Operation, Operation]]:
    """Each needs all changes that were begun before its answer; they need each other in turn."""
    changing = [o for o in operations if o.f != F.READ and not o.failed]
    yield from zip(changing[1:], changing, strict=False)
    for seeing in operations:
        past = bisect_right(changing, seeing.last_ns, key=lambda o: o.start_ns)
        if past:
            yield seeing, changing[past - 1]
