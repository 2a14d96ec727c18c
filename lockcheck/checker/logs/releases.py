"""What the answers of releases prove: not every `ok` says that the lock was still held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lockcheck.history import Terms
from lockcheck.history.table import NEVER, Mask, Op, Outcome, Table


def as_proven(table: Table, terms: Terms) -> Table:
    """The table with releases that did not check the owner as unconfirmed, and those whose answer
    says nothing as ones that may have had no effect."""
    confirmed = (table.f == Op.RELEASE) & (table.outcome == Outcome.OK)
    blind = confirmed & table.blind
    table = unconfirmed(table, blind) if blind.any() else table
    unsaid = confirmed & ~blind & (table.unsaid if terms.tells_release else True)
    if not unsaid.any():
        return table
    outcome = np.where(unsaid, Outcome.EITHER, table.outcome).astype(np.int8)
    return replace(table, outcome=outcome)


def unconfirmed(table: Table, rows: Mask) -> Table:
    """The table with these rows as unconfirmed ones."""
    outcome = np.where(rows, Outcome.INFO, table.outcome).astype(np.int8)
    return replace(table, outcome=outcome, end=np.where(rows, NEVER, table.end))
