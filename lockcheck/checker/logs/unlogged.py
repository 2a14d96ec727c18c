"""What was under way when a log was cut: most programs write a row when the operation is done.

So each client may have done one more thing after its last row: released the lock that it holds, or
written a value that another one has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from lockcheck.checker.linearizability import Model
from lockcheck.checker.linearizability.models import LOCKING, STORING
from lockcheck.history.ordering import order_by
from lockcheck.history.table import (
    NEVER,
    NO_TOKEN,
    NOTHING,
    TYPES,
    Ints,
    Op,
    Outcome,
    Table,
    among,
)


@dataclass(frozen=True, slots=True)
class Unlogged:
    """Operations that may be missing: a place for each."""

    process: list[int]
    key: list[int]
    since: list[int]  # when the row before it was done
    argument: list[int]  # of a write

    def __len__(self) -> int:
        return len(self.process)

    def take(self, places: list[int]) -> Unlogged:
        columns = (self.process, self.key, self.since, self.argument)
        return Unlogged(*([column[place] for place in places] for column in columns))


def last_rows(table: Table) -> dict[int, int]:
    """When the last row of each process was done, on whatever key: of all rows of the log."""
    done = np.where(table.end == NEVER, table.start, table.end)
    width = int(table.process.max(initial=0)) + 1
    last = np.full(width, -NEVER)
    np.maximum.at(last, table.process, done)
    return {number: int(last[number]) for number in np.unique(table.process).tolist()}


def unlogged(part: Table, model: Model, last: dict[int, int]) -> Unlogged:
    """What may be missing of the operations on the objects of `part`. Where any client may release
    a lock, it is not known whose release is missing: there all of them have to be logged."""
    found: Iterable[tuple[int, int, int, int]] = ()
    if model.operations == LOCKING and model.owners:
        found = _releases(part, last)
    elif model.operations == STORING:
        found = _writes(part, last)
    columns = list(zip(*found, strict=True)) or [(), (), (), ()]
    return Unlogged(*map(list, columns))


def with_unlogged(
    part: Table, until: Ints | None, missing: Unlogged, model: Model
) -> tuple[Table, Ints | None]:
    """The operations and promises, with those that may be missing as unconfirmed ones."""
    f = Op.RELEASE if model.operations == LOCKING else Op.WRITE
    given = {"f": f, "outcome": Outcome.INFO, "end": NEVER, "token": NO_TOKEN}
    given |= {"blind": False, "unsaid": False, "shared": False}
    added = {
        name: np.full(len(missing), given.get(name, NOTHING), kind) for name, kind in TYPES.items()
    }
    added["process"] = added["owner"] = np.array(missing.process, np.int32)
    added["key"] = np.array(missing.key, np.int32)
    added["start"] = np.array(missing.since, np.int64)
    added["argument"] = np.array(missing.argument, np.int32)
    columns = {name: np.concatenate((getattr(part, name), added[name])) for name in TYPES}
    order = np.argsort(columns["start"], kind="stable")
    table = Table(**{n: column[order] for n, column in columns.items()}, symbols=part.symbols)
    if until is not None:
        until = np.concatenate((until, np.full(len(missing), NEVER)))[order]
    return table, until


def _releases(part: Table, last: dict[int, int]) -> Iterator[tuple[int, int, int, int]]:
    """By clients that hold it when the log ends."""
    sure = (part.outcome == Outcome.OK) & among(part.f, LOCKING)
    rows = np.flatnonzero(sure)
    rows = rows[order_by(part.key[rows], part.owner[rows])]
    ends = np.append((part.key[rows][1:] != part.key[rows][:-1]), True)
    ends[:-1] |= part.owner[rows][1:] != part.owner[rows][:-1]
    final = rows[np.flatnonzero(ends)] if len(rows) else rows
    final = final[part.f[final] != Op.RELEASE]
    for row in final.tolist():
        owner = int(part.owner[row])
        if owner in last:
            yield owner, int(part.key[row]), last[owner], NOTHING


def _writes(part: Table, last: dict[int, int]) -> Iterator[tuple[int, int, int, int]]:
    """Of values that were seen and not written: each by the client that can have written it
    first, of those that were not heard of again."""
    left = sorted(last, key=last.__getitem__)
    for key, value, seen, reader in _unwritten(part):
        writer = next((each for each in left if last[each] <= seen and each != reader), None)
        if writer is not None:
            left.remove(writer)
            yield writer, key, last[writer], value


def _unwritten(part: Table) -> list[tuple[int, int, int, int]]:
    """The key, the value, when it was seen first, and by whom; in the order of that time."""
    written = {
        (int(part.key[row]), value)
        for row in np.flatnonzero(part.outcome != Outcome.FAIL).tolist()
        if (value := _written_by(part, row)) is not None
    }
    first: dict[tuple[int, int], tuple[int, int]] = {}
    looks = (part.outcome == Outcome.OK) & among(part.f, (Op.READ, Op.CAS))
    for row in np.flatnonzero(looks).tolist():
        read = part.f[row] == Op.READ
        value = int(part.result[row] if read else part.argument[row])
        what = int(part.key[row]), value
        if value != NOTHING and what not in written:
            seen = int(part.end[row]), int(part.process[row])
            first[what] = min(first.get(what, seen), seen)
    return sorted(((*what, *seen) for what, seen in first.items()), key=lambda each: each[2])


def _written_by(part: Table, row: int) -> int | None:
    if part.f[row] == Op.WRITE:
        return int(part.argument[row])
    return int(part.second[row]) if part.f[row] == Op.CAS else None
