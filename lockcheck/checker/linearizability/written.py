"""Who wrote what each operation on a register saw: columns over all keys at once.

Three things are settled here, before any time is looked at:

What failed did not happen. A read that nobody confirmed told nothing to anybody.

A write (or cas) that nobody confirmed counts if and only if its value was seen. If it was, it
happened, because nobody else writes that value. If it was not, it may be taken as never done, and
that is exact: in an order that has it nobody sees its value, so the next operation that is not
another one of its kind is a plain write, to which it makes no difference what it replaces. Take it
away, and the order is as legal as before.

A cas that replaces a value by itself is a read of it. Nobody confirmed it: it is nothing at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lockcheck.history.table import Codes, Ints, Op, Outcome, Table

Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.intp]

T = TypeVar("T", bound=np.generic)

BEFORE = -(1 << 62)  # when initial values were written: before everything
NOBODY = -1  # wrote what was seen


@dataclass(frozen=True, slots=True)
class RegisterColumns:
    """What happened, or may have, in the order of the invocations.

    The first rows are no operations: there is one for each key, and it writes the initial value.
    So of two rows the later one never began earlier, whatever they are.
    """

    keys: Codes  # their symbols
    rows: Rows  # of the table, for each that is an operation
    key: Rows  # an index of `keys`
    start: Ints  # nanoseconds
    end: Ints
    sure: Mask  # somebody confirmed it
    wrote: Mask  # it changed the value, if it happened
    looked: Mask  # it saw a value
    new: Codes  # what it wrote
    seen: Codes  # what it saw

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True)
class Written:
    columns: RegisterColumns
    source: Rows  # the row that wrote what this one saw, NOBODY also where it saw nothing
    happened: Mask
    twice: Rows  # rows that wrote, or may have, a value that was seen and that another one wrote


def written(table: Table, initial: int) -> Written:
    columns = _columns(table, initial)
    source, again, first = _sources(columns, len(table.symbols))
    seen = _was_seen(columns, source)
    happened = columns.sure | seen
    return Written(columns, source, happened, twice=again[seen[first]])


def _columns(table: Table, initial: int) -> RegisterColumns:
    rows = np.flatnonzero(table.outcome != Outcome.FAIL)
    f, argument, second = table.f[rows], table.argument[rows], table.second[rows]
    cas = f == Op.CAS
    keys, key = _dense(table.key[rows])

    def behind(first: int, column: NDArray[T]) -> NDArray[T]:
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
        new=behind(initial, np.where(cas, second, argument)),
        seen=behind(initial, np.where(f == Op.READ, table.result[rows], argument)),
    )


def _dense(symbols: Codes) -> tuple[Codes, Rows]:
    """The symbols that occur, and for each place which of them it is. Never a sort."""
    lowest = int(symbols.min(initial=0))
    present = np.zeros(int(symbols.max(initial=0)) - lowest + 1, dtype=np.bool_)
    present[symbols - lowest] = True
    number = np.cumsum(present) - 1
    occurring: Codes = (np.flatnonzero(present) + lowest).astype(np.int32)
    return occurring, number[symbols - lowest]


def _sources(columns: RegisterColumns, symbols: int) -> tuple[Rows, Rows, Rows]:
    """Who wrote what was seen; who wrote it too, and in whose stead it would have been named."""
    writers, lookers = np.flatnonzero(columns.wrote), np.flatnonzero(columns.looked)
    width = symbols + 1
    code = columns.key[writers] * width + columns.new[writers] + 1
    asked = columns.key[lookers] * width + columns.seen[lookers] + 1
    span = len(columns.keys) * width
    if span > 8 * len(columns):  # a table of all pairs of a key and a value would not be small
        pairs, numbers = np.unique(np.concatenate((code, asked)), return_inverse=True)
        code, asked, span = numbers[: len(code)], numbers[len(code) :], len(pairs)
    writer = np.full(span, NOBODY, dtype=np.intp)
    writer[code] = writers
    source = np.full(len(columns), NOBODY, dtype=np.intp)
    source[lookers] = writer[asked]
    named = writer[code]
    return source, writers[named != writers], named[named != writers]


def _was_seen(columns: RegisterColumns, source: Rows) -> Mask:
    """Whose value was seen by what certainly happened.

    A cas that nobody confirmed and whose value was seen did happen, so it saw a value in its turn,
    and so on. Pointers that jump twice as far each time find them all in a few steps, however long
    the way is.
    """
    seen = np.zeros(len(columns), dtype=np.bool_)
    seen[_known(source[columns.sure])] = True
    unsure = np.flatnonzero(~columns.sure & columns.looked)
    jump = np.full(len(columns) if len(unsure) else 0, NOBODY, dtype=np.intp)
    jump[unsure] = source[unsure]
    for _ in range(len(unsure).bit_length() + 1):
        unsure = unsure[jump[unsure] != NOBODY]
        seen[_known(jump[unsure[seen[unsure]]])] = True
        jump[unsure] = jump[jump[unsure]]
    return seen


def _known(source: Rows) -> Rows:
    known: Rows = source[source != NOBODY]
    return known
