"""A part of a lock's history for which there is no order even if anything may have been before.

Where a search takes long, it is mostly because there is no order, and all ways to have come to the
operation that it cannot go past are tried, from the beginning on. A few operations before that one
are enough to see it, as a rule. They are taken by themselves: what was under way when they begin
may have happened or not, the last token is not known, and whoever does something in this time may
have been granted the lock before, as often as it does. That allows more than what was before; so if
there is no order of these, there is none of all.

As often is enough: of more grants than that, a client gives back the others by releases that nobody
confirmed, or not at all. Then both may be left out, those releases from the first one on: it still
has one left for each of its confirmed operations to come. And none is of use but right before one
of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lockcheck.history.table import NEVER, NO_TOKEN, Ints, Op, Outcome, Table

SIZES = (60, 600)  # operations


@dataclass(frozen=True, slots=True)
class Window:
    table: Table
    until: Ints | None
    rows: Ints  # of the whole table; -1 for what may have been before


def window(table: Table, until: Ints | None, last_ns: int, size: int) -> Window | None:
    """The last operations that began by `last_ns`, so many; None where that is all there are."""
    beyond = int(np.searchsorted(table.start, last_ns, "right"))
    first = beyond - size
    if first <= 0:
        return None
    since_ns = int(table.start[first])
    rows = np.arange(beyond)
    unsure = (table.outcome[rows] == Outcome.INFO) | (table.start[rows] < since_ns)
    unsure |= table.end[rows] > last_ns
    there = (table.outcome[rows] != Outcome.FAIL) & (table.end[rows] >= since_ns)
    held = rows[there & ~unsure]  # each of these may be about a grant from before,
    there &= (table.f[rows] != Op.ACQUIRE) | (table.start[rows] >= since_ns)  # this one or another
    rows, unsure = rows[there], unsure[there]
    both = table.take(np.concatenate((held, rows)))
    before = np.arange(len(both)) < len(held)
    both.f[before], both.start[before], both.token[before] = Op.ACQUIRE, since_ns, NO_TOKEN
    unsure = np.append(before[: len(held)], unsure)
    both.outcome[unsure], both.end[unsure] = Outcome.INFO, NEVER
    numbers = np.where(before, -1, np.concatenate((held, rows)))
    order = np.argsort(both.start, kind="stable")
    promised = None if until is None else until[np.concatenate((held, rows))][order]
    return Window(both.take(order), promised, numbers[order])
