"""Operations as columns, for engines that read histories with millions of them.

Row `i` of every column is about the same operation; rows are in the order of their invocations.
Texts, keys, processes and values are numbers, which `symbols` translates.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from itertools import repeat
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from lockcheck.history.event import F
from lockcheck.history.model import Operation
from lockcheck.history.older import says_blind

Ints: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.int32]
Bytes: TypeAlias = NDArray[np.int8]
Mask: TypeAlias = NDArray[np.bool_]

NEVER = 1 << 61  # the end of an unconfirmed operation: after everything else
NO_TOKEN = -(1 << 63)
NOTHING = -1  # the number of an absent value, or null


class Op(IntEnum):
    """The operations that the models know; every other one is OTHER."""

    ACQUIRE = 0
    RELEASE = 1
    RENEW = 2
    READ = 3
    WRITE = 4
    CAS = 5
    ADD = 6
    RUN = 7
    OTHER = 8


OP_OF = {op.name.lower(): op for op in Op if op is not Op.OTHER}


class Outcome(IntEnum):
    OK = 0
    FAIL = 1
    INFO = 2  # unknown; its end is NEVER
    EITHER = 3  # confirmed, but possibly without an effect


class Symbols:
    """Numbers for values and names; equal numbers only for equal JSON (`1` is not `true`)."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._texts: list[bytes] = []
        self._names: dict[str, int] = {}  # a cache of those that are texts

    def number(self, value: object) -> int:
        if value is None:
            return NOTHING
        if type(value) is not str:
            return self._number(value)
        known = self._names.get(value)
        if known is None:
            known = self._names[value] = self._number(value)
        return known

    def _number(self, value: object) -> int:
        text = msgspec.json.encode(value, order="sorted")
        known = self._numbers.get(text)
        if known is None:
            known = self._numbers[text] = len(self._texts)
            self._texts.append(text)
        return known

    def text(self, number: int) -> bytes:
        return self._texts[number]

    def value(self, number: int) -> object:
        return None if number == NOTHING else msgspec.json.decode(self.text(number))

    def hashable(self, number: int) -> Hashable:
        """The value in a form that can be compared: equal only for equal JSON."""
        value = self.value(number)
        return value if value is None or type(value) in (str, int) else (self.text(number),)

    def __len__(self) -> int:
        return len(self._texts)


@dataclass(frozen=True, slots=True)
class Table:
    """The operations of a history, one array per column."""

    f: Bytes  # an Op
    outcome: Bytes  # an Outcome
    start: Ints  # nanoseconds
    end: Ints  # nanoseconds, NEVER if unknown
    process: Codes  # a symbol
    key: Codes  # a symbol, NOTHING for the only key of a history without keys
    argument: Codes  # the value to write, to add, to run; of a cas the expected one
    second: Codes  # of a cas the new value
    result: Codes  # the value of the answer
    token: Ints  # of the answer, or NO_TOKEN
    ttl_ms: Codes  # the lease that was asked for, or NOTHING
    owner: Codes  # the process whose hold it concerns: of a keeper's renewal the client
    blind: Mask  # a release that did not check whose lock it removed
    unsaid: Mask  # a release that was confirmed whether or not the lock was still held
    shared: Mask  # an acquire of a shared lock
    turn: Codes  # lower than that of its process's next operation; NOTHING: unknown
    symbols: Symbols

    def __len__(self) -> int:
        return len(self.f)

    def take(self, rows: Mask | NDArray[np.intp] | slice) -> Table:
        """These rows only, in the same order."""
        return Table(**{name: getattr(self, name)[rows] for name in TYPES}, symbols=self.symbols)

    def same_client(self, one: Ints, other: Ints) -> Mask:
        """Which pairs of rows are of the same process and key."""
        same: Mask = self.key[one] == self.key[other]
        same &= self.process[one] == self.process[other]
        return same

    @staticmethod
    def of(operations: Sequence[Operation], symbols: Symbols | None = None) -> Table:
        """The table of `operations`, which are in the order of their invocations."""
        symbols = symbols or Symbols()
        rows = [_row(operation, symbols) for operation in operations]
        columns = iter(zip(*rows, strict=True) if rows else repeat((), len(TYPES)))
        arrays = {name: np.array(next(columns), dtype=kind) for name, kind in TYPES.items()}
        return Table(**arrays, symbols=symbols)


def among(codes: Bytes, some: Iterable[Op] | Iterable[Outcome]) -> Mask:
    """Which of the codes are one of these; fast for few rows, too."""
    wanted = np.zeros(len(Op), dtype=np.bool_)
    wanted[list(some)] = True
    found: Mask = wanted[codes]
    return found


def blind_by_value(f: Bytes, result: Codes, symbols: Symbols) -> Mask:
    """The releases whose value says it: in older histories, and in formats without the field."""
    released = (f == Op.RELEASE) & (result != NOTHING)
    results = np.unique(result[released]).tolist()
    blind = [number for number in results if says_blind(symbols.value(number))]
    return released & np.isin(result, blind) if blind else np.broadcast_to(np.False_, len(f))


KINDS: dict[Any, Any] = {"Bytes": np.int8, "Codes": np.int32, "Ints": np.int64, "Mask": np.bool_}


def types_of(columns: type[Any]) -> dict[str, Any]:
    """The types of the columns of a dataclass, in their order, by their annotations."""
    return {each.name: KINDS[each.type] for each in fields(columns) if each.type in KINDS}


TYPES = types_of(Table)


def _row(operation: Operation, symbols: Symbols) -> tuple[int, ...]:
    invoke, answer = operation.invoke, operation.answer
    asked, second = _asked(operation)
    end_ns = operation.end_ns
    token = answer.token if answer is not None and operation.ok else None
    return (
        OP_OF.get(operation.f, Op.OTHER),
        Outcome.OK if operation.ok else Outcome.FAIL if operation.failed else Outcome.INFO,
        operation.start_ns,
        NEVER if end_ns is None else end_ns,
        symbols.number(operation.process),
        symbols.number(invoke.key),
        symbols.number(asked),
        symbols.number(second),
        symbols.number(answer.value if answer else None),
        NO_TOKEN if token is None else token,
        NOTHING if invoke.ttl_ms is None else invoke.ttl_ms,
        symbols.number(operation.owner if operation.f == F.RENEW else operation.process),
        operation.blind,
        operation.unsaid,
        invoke.shared,
        NOTHING,
    )


def _asked(operation: Operation) -> tuple[object, object]:
    """The operation's argument; of a cas the expected and the new value."""
    value = operation.invoke.value
    if operation.f == F.CAS and isinstance(value, list | tuple) and len(value) == 2:
        return value[0], value[1]
    return value, None
