"""Guesses the models of a history that names none, from its operations.

A lock is taken for a reentrant one as soon as a client enters again and leaves twice in a row. A
client that enters again and leaves once has more likely lost its lease. A semaphore cannot be
guessed: the user has to name it.
"""

from __future__ import annotations

import numpy as np

from lockcheck.history.ordering import order_by
from lockcheck.history.table import NO_TOKEN, NOTHING, Ints, Mask, Op, Outcome, Table

MOST_READS = 100  # answers of reads that are looked at


def models_of(table: Table) -> tuple[str, ...]:
    """The names of the models that together know all operations; empty if no models do."""
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
    """Whether a client had two grants in a row, and two releases in a row that were not refused.

    A refused release counts as one: its client had lost the lock and enters anew. Two grants with
    different tokens are different holds. A release without an answer may have been repeated by the
    next. An acquire without an answer between two releases may have been granted.
    """
    asked = (table.f == Op.ACQUIRE) & (table.outcome != Outcome.FAIL)
    entered = _by_client(table, granted | (table.f == Op.RELEASE))
    one, other = entered[:-1], entered[1:]
    again = table.same_client(one, other) & granted[one] & granted[other]
    again &= ~_different_tokens(table, one, other)
    left = _by_client(table, asked | (table.f == Op.RELEASE))
    first, second = left[:-1], left[1:]
    twice = table.same_client(first, second) & ~asked[first] & ~asked[second]
    twice &= (table.outcome[first] == Outcome.OK) & (table.outcome[second] != Outcome.FAIL)
    clients = {(table.key[row], table.process[row]) for row in one[again].tolist()}
    return any((table.key[row], table.process[row]) in clients for row in first[twice].tolist())


def _by_client(table: Table, which: Mask) -> Ints:
    rows = np.flatnonzero(which)
    ordered: Ints = rows[order_by(table.key[rows], table.process[rows])]
    return ordered


def _different_tokens(table: Table, one: Ints, other: Ints) -> Mask:
    """Whether both grants have tokens, and different ones."""
    first, second = table.token[one], table.token[other]
    apart: Mask = (first != second) & (first != NO_TOKEN) & (second != NO_TOKEN)
    return apart


def _adding(table: Table) -> str:
    """A set's reads return lists, a counter's a number."""
    read = (table.f == Op.READ) & (table.outcome == Outcome.OK) & (table.result != NOTHING)
    results = np.unique(table.result[read])[:MOST_READS]
    values = [table.symbols.value(int(number)) for number in results]
    return "counter" if values and all(type(value) is int for value in values) else "set"
