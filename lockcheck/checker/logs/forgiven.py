"""Answers that prove nothing, and keys for which that explains a mistake."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lockcheck.checker.linearizability import Model, Patience, decide
from lockcheck.history.table import NEVER, Ints, Mask, Op, Outcome, Table


def without_blind_releases(table: Table) -> Table:
    """The table with releases that did not check the owner as unconfirmed: they prove nothing."""
    confirmed = table.blind & (table.outcome == Outcome.OK)
    return _unconfirmed(table, confirmed) if confirmed.any() else table


def _unconfirmed(table: Table, rows: Mask) -> Table:
    outcome = np.where(rows, Outcome.INFO, table.outcome).astype(np.int8)
    return replace(table, outcome=outcome, end=np.where(rows, NEVER, table.end))


def forgiven_keys(
    table: Table,
    model: Model,
    until: Ints | None,
    keys: list[int],
    patience: Patience,
    *,
    partial: bool,
) -> frozenset[int]:
    """The keys for which something else may explain the mistake, so that it proves nothing.

    A refused release shows that the lock was gone by then: perhaps by a lease, or by the same
    release, sent twice. Where a production log mentions no lease, a holder may have had one.
    """
    rows = np.flatnonzero(np.isin(table.key, keys))
    part = table.take(rows)
    lenient, held = part, None if until is None else until[rows]
    refused = (part.f == Op.RELEASE) & (part.outcome == Outcome.FAIL)
    if refused.any():
        lenient = _unconfirmed(lenient, refused)
    if partial and held is None:
        grants = (part.f == Op.ACQUIRE) & (part.outcome == Outcome.OK)
        held = np.where(grants, part.end, NEVER)
    if lenient is part and held is until:
        return frozenset()
    again = decide(lenient, model, held, patience).answers
    wrong = {key for key, answer in again.items() if answer.linearizable is False}
    return frozenset(keys) - wrong  # an undecided one may explain it, too
