"""Which models a history without any could be meant by: seen from its operations.

A lock is taken for a reentrant one as soon as somebody enters again and leaves twice in a row; who
enters again and leaves once is rather one whose lease had run out. A semaphore cannot be guessed:
its user has to name it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lockcheck.history.ordering import order_by
from lockcheck.history.table import NO_TOKEN, NOTHING, Op, Outcome, Table

Mask = NDArray[np.bool_]
LOOKED_AT = 100  # answers of reads


def models_of(table: Table) -> tuple[str, ...]:
    """The names of the models that together know all of its operations; empty: none does."""
    present = {Op(f) for f in np.unique(table.f)}
    models = []
    if Op.ACQUIRE in present:
        models.append(_lock(table))
    if Op.CAS in present:
        models.append("cas-register")
    elif Op.WRITE in present or (Op.READ in present and Op.ADD not in present):
        models.append("register")
    if Op.ADD in present:
        models.append(_adding(table))
    return tuple(models)


def _lock(table: Table) -> str:
    granted = (table.f == Op.ACQUIRE) & (table.outcome == Outcome.OK)
    fenced = bool(granted.any() and (table.token[granted] != NO_TOKEN).all())
    if _reentrant(table, granted):
        return "reentrant-fenced" if fenced else "reentrant"
    return "fenced" if fenced else "owner-mutex"


def _reentrant(table: Table, granted: Mask) -> bool:
    """Of one client and key: two grants in a row, and two releases in a row that were not refused.

    A release that was refused was one all the same: who had its lock taken away enters anew, not
    again. So did, most of the time, who never released it at all."""
    rows = np.flatnonzero(granted | (table.f == Op.RELEASE))
    if len(rows) < 2:
        return False
    rows = rows[order_by(table.key[rows], table.process[rows])]
    same = _same(table.process, rows) & _same(table.key, rows)
    enters, left = granted[rows], ~granted[rows] & (table.outcome[rows] != Outcome.FAIL)
    group = np.append(0, np.cumsum(~same))[:-1]
    again = group[same & enters[:-1] & enters[1:]]
    return bool(np.isin(again, group[same & left[:-1] & left[1:]]).any())


def _same(column: NDArray[np.int32], rows: NDArray[np.intp]) -> Mask:
    same: Mask = column[rows][:-1] == column[rows][1:]
    return same


def _adding(table: Table) -> str:
    """A set is read as its elements, a counter as a number."""
    read = (table.f == Op.READ) & (table.outcome == Outcome.OK) & (table.result != NOTHING)
    results = np.unique(table.result[read])[:LOOKED_AT]
    values = [table.symbols.value(int(number)) for number in results]
    return "counter" if values and all(type(value) is int for value in values) else "set"
