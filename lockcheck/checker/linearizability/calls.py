"""Turns rows of a table into calls of a model; equal calls form a class."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lockcheck.checker.linearizability.leases import NO_PROMISE
from lockcheck.checker.linearizability.models import Call, Model
from lockcheck.checker.linearizability.own_order import touching
from lockcheck.history.ordering import order_by
from lockcheck.history.table import (
    NEVER,
    NO_TOKEN,
    NOTHING,
    Codes,
    Ints,
    Mask,
    Op,
    Outcome,
    Symbols,
    Table,
    among,
)

# They look at the state and never change it; but with leases, a renewal does.
LOOKS = (Op.READ, Op.RENEW)
NO_PROCESS = -2  # the model does not look at the caller
WIDEST = 1 << 31  # the product of two such numbers fits into 64 bits


@dataclass(frozen=True, slots=True)
class Calls:
    """The rows that matter to a model, in the order of their invocations, and their classes."""

    rows: Ints  # of the table
    start: Ints  # nanoseconds
    end: Ints  # NEVER where no_process confirmed it
    kind: Codes  # an index of `classes`
    classes: tuple[Call, ...]  # all different
    touching: tuple[Ints, Ints]  # pairs of calls: see `own_order`

    def __len__(self) -> int:
        return len(self.rows)

    def call(self, index: int) -> Call:
        return self.classes[int(self.kind[index])]


def calls_of(table: Table, model: Model, until: Ints | None = None) -> Calls:
    """The calls of a table; `until` is for models with leases. A failed operation did not happen,
    and an unconfirmed one that only looks has no effect either way."""
    confirmed = _confirmed(table)
    known = among(table.f, model.operations)
    matters = known & (confirmed | ((table.outcome == Outcome.INFO) & ~among(table.f, LOOKS)))
    if model.crowd:  # else such a grant shows nowhere, and would only keep others out
        matters &= confirmed | (table.f != Op.ACQUIRE) | _mentioned(table)
    rows = np.flatnonzero(matters)
    rows = rows[np.argsort(table.start[rows], kind="stable")]
    part = table.take(rows)
    columns = _distinguishing(part, model)
    if until is not None:
        columns = np.vstack((columns, _promised(part, until[rows])))
    kind, first = _numbered(columns)
    distinct = columns[:, first]
    classes = tuple(_call(column, table.symbols, model) for column in distinct.T.tolist())
    return Calls(rows, table.start[rows], table.end[rows], kind, classes, touching(part))


def _distinguishing(table: Table, model: Model) -> Ints:
    """The columns in which calls differ, without what the model does not look at."""
    confirmed = _confirmed(table)
    reads, writes = table.f == Op.READ, table.f == Op.CAS
    granted = confirmed & (table.f == Op.ACQUIRE)
    no_process = np.full(len(table), NO_PROCESS)
    columns = (
        table.f,
        table.process if model.owners else no_process,
        np.where(reads, NOTHING, table.argument),
        np.where(writes, table.second, NOTHING),
        np.where(reads, table.result, NOTHING),
        np.where(granted, table.token, NO_TOKEN) if model.tokens else no_process,
        confirmed,
        table.outcome == Outcome.EITHER,
        *((table.shared, _is_last(table)) if model.crowd else (no_process, no_process)),
    )
    return np.stack([column.astype(np.int64) for column in columns])


def _confirmed(table: Table) -> Mask:
    return among(table.outcome, (Outcome.OK, Outcome.EITHER))


def _promised(table: Table, until: Ints) -> Ints:
    promising = (table.outcome == Outcome.OK) & (table.f != Op.RELEASE)
    return np.where(promising, until, NO_PROMISE)


def _mentioned(table: Table) -> Mask:
    """The rows after which their client confirms a release or a renewal."""
    mentions = (table.outcome == Outcome.OK) & among(table.f, (Op.RELEASE, Op.RENEW))
    owner, key = table.owner.astype(np.int64), table.key.astype(np.int64)
    client = (key + 1) * (int(owner.max(initial=0)) + 1) + owner
    numbers, client = np.unique(client, return_inverse=True)
    last = np.full(len(numbers), -NEVER)
    np.maximum.at(last, client[mentions], table.end[mentions])
    mentioned: Mask = last[client] >= table.start
    return mentioned


def _is_last(table: Table) -> Mask:
    """The releases that may have had no effect, unless their client's next confirmed operation is a
    release or a renewal: then it may still have what it was granted before."""
    last: Mask = table.outcome == Outcome.EITHER
    if not last.any():
        return last
    rows = np.flatnonzero(last | (table.outcome == Outcome.OK))
    rows = rows[order_by(table.key[rows], table.owner[rows])]
    sure = np.where(table.outcome[rows] == Outcome.OK, np.arange(len(rows)), len(rows))
    following = np.minimum.accumulate(np.append(sure, len(rows))[::-1])[::-1][1:]
    there = np.flatnonzero(following < len(rows))
    one, other = rows[there], rows[following[there]]
    again = (table.key[one] == table.key[other]) & (table.owner[one] == table.owner[other])
    last[one[again & (table.f[other] != Op.ACQUIRE)]] = False
    return last


def _numbered(columns: Ints) -> tuple[Codes, NDArray[np.intp]]:
    """Numbers for columns: equal ones are equal, in the order of their first appearance."""
    kind, kinds = np.zeros(columns.shape[1], dtype=np.int64), 1
    for row in columns if columns.size else ():
        codes, count = row, int(row.max()) - int(row.min()) + 1
        if count == 1:
            continue
        if count > WIDEST:
            codes, count = _renumbered(row)
        if kinds > WIDEST:
            kind, kinds = _renumbered(kind)
        kind, kinds = kind * count + (codes - codes.min()), kinds * count
    _, first, number = np.unique(kind, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[number], first[order]


def _renumbered(values: Ints) -> tuple[Ints, int]:
    """The values as numbers from 0 up to the number of distinct ones."""
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int64), len(distinct)


def _call(column: list[int], symbols: Symbols, model: Model) -> Call:
    f, process, argument, second, result, token, confirmed, either, shared, last, *until = column
    plural = model.many and f == Op.READ
    return Call(
        Op(f),
        process=symbols.hashable(process) if model.owners else None,
        argument=symbols.hashable(argument),
        second=symbols.hashable(second),
        result=_elements(symbols, result) if plural else symbols.hashable(result),
        token=token if model.tokens and token != NO_TOKEN else None,
        confirmed=bool(confirmed),
        either=bool(either),
        until=until[0] if until else None,
        shared=shared == 1,
        last=last == 1,
    )


def _elements(symbols: Symbols, result: int) -> Hashable:
    """A list as the set of its elements; no answer as the empty set."""
    value = symbols.value(result)
    if value is not None and not isinstance(value, list):
        return symbols.hashable(result)
    elements: Iterable[object] = value or ()
    return frozenset(symbols.hashable(symbols.number(element)) for element in elements)
