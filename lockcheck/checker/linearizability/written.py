"""Finds the write of every value that a register's operations saw, for all keys at once.

Three things are settled here, before times matter:

A failed operation did not happen. An unconfirmed read proves nothing.

An unconfirmed write (or cas) counts if and only if its value was seen. If it was, it happened,
because no other operation writes that value. If it was not, it may be taken as never done, and that
is exact: in an order that contains it no operation sees its value, so the next operation of another
kind is a plain write, which may replace any value. Without it, the order is as legal as before.

A cas from a value to the same value is a read; unconfirmed, it is nothing at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lockcheck.history.table import NOTHING, Codes, Ints, Mask, Op, Outcome, Table

Rows: TypeAlias = NDArray[np.intp]

T = TypeVar("T", bound=np.generic)

BEFORE = -(1 << 62)  # when initial values were written: before all operations
UNWRITTEN = -1  # in place of the row that wrote a value


@dataclass(frozen=True, slots=True)
class RegisterColumns:
    """The operations that happened, or may have, in the order of their invocations. They follow a
    row for each key, which writes the initial value."""

    keys: Codes  # their symbols
    rows: Rows  # of the table, for each operation
    key: Rows  # an index of `keys`
    start: Ints  # nanoseconds
    end: Ints
    sure: Mask  # it was confirmed
    wrote: Mask  # it changes the value, if it happened
    looked: Mask  # it sees a value
    new: Codes  # the value that it writes
    seen: Codes  # the value that it sees

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True)
class Written:
    """Which row wrote the value that each row saw."""

    columns: RegisterColumns
    source: Rows  # the row that wrote what this one saw, or UNWRITTEN
    happened: Mask
    twice: Rows  # rows that wrote, or may have, a seen value that another row wrote, too


def written(table: Table, initial: Mapping[int, int]) -> Written:
    """`initial`: by key, the values at the beginning that are not null."""
    columns = _columns(table, initial)
    source, again, first = _sources(columns, len(table.symbols))
    seen = _was_seen(columns, source)
    happened = columns.sure | seen
    return Written(columns, source, happened, twice=again[seen[first]])


def _columns(table: Table, initial: Mapping[int, int]) -> RegisterColumns:
    rows = np.flatnonzero(table.outcome != Outcome.FAIL)
    f, argument, second = table.f[rows], table.argument[rows], table.second[rows]
    cas = f == Op.CAS
    keys, key = _dense(table.key[rows])

    values = [initial.get(each, NOTHING) for each in keys.tolist()] if initial else NOTHING

    def behind(first: int | list[int], column: NDArray[T]) -> NDArray[T]:
        return np.concatenate((np.full(len(keys), first, column.dtype), column))

    return RegisterColumns(
        keys=keys,
        rows=rows,
        key=np.concatenate((np.arange(len(keys)), key)),
        start=behind(BEFORE, table.start[rows]),
        end=behind(BEFORE, table.end[rows]),
        sure=behind(True, table.outcome[rows] == Outcome.OK),
        wrote=behind(True, (f == Op.WRITE) | (cas & (argument != second))),
        looked=behind(False, f != Op.WRITE),
        new=behind(values, np.where(cas, second, argument)),
        seen=behind(values, np.where(f == Op.READ, table.result[rows], argument)),
    )


def _dense(symbols: Codes) -> tuple[Codes, Rows]:
    """The symbols that occur, and for each place the index of its symbol; without a sort."""
    lowest = int(symbols.min(initial=0))
    present = np.zeros(int(symbols.max(initial=0)) - lowest + 1, dtype=np.bool_)
    present[symbols - lowest] = True
    number = np.cumsum(present) - 1
    occurring: Codes = (np.flatnonzero(present) + lowest).astype(np.int32)
    return occurring, number[symbols - lowest]


def _sources(columns: RegisterColumns, symbols: int) -> tuple[Rows, Rows, Rows]:
    """The writer of what each row saw; the rows that wrote the same, and for whom each stands."""
    writers, lookers = np.flatnonzero(columns.wrote), np.flatnonzero(columns.looked)
    width = symbols + 1
    code = columns.key[writers] * width + columns.new[writers] + 1
    asked = columns.key[lookers] * width + columns.seen[lookers] + 1
    span = len(columns.keys) * width
    if span > 8 * len(columns):  # a table of all pairs of a key and a value would not be small
        pairs, numbers = np.unique(np.concatenate((code, asked)), return_inverse=True)
        code, asked, span = numbers[: len(code)], numbers[len(code) :], len(pairs)
    writer = np.full(span, UNWRITTEN, dtype=np.intp)
    writer[code] = writers
    source = np.full(len(columns), UNWRITTEN, dtype=np.intp)
    source[lookers] = writer[asked]
    named = writer[code]
    return source, writers[named != writers], named[named != writers]


def _was_seen(columns: RegisterColumns, source: Rows) -> Mask:
    """The rows whose value was seen by an operation that certainly happened. An unconfirmed cas
    whose value was seen did happen, so it saw a value in its turn: followed by pointer jumping."""
    seen = np.zeros(len(columns), dtype=np.bool_)
    seen[_known(source[columns.sure])] = True
    unsure = np.flatnonzero(~columns.sure & columns.looked)
    jump = np.full(len(columns) if len(unsure) else 0, UNWRITTEN, dtype=np.intp)
    jump[unsure] = source[unsure]
    for _ in range(len(unsure).bit_length() + 1):
        unsure = unsure[jump[unsure] != UNWRITTEN]
        seen[_known(jump[unsure[seen[unsure]]])] = True
        jump[unsure] = jump[jump[unsure]]
    return seen


def _known(source: Rows) -> Rows:
    known: Rows = source[source != UNWRITTEN]
    return known
