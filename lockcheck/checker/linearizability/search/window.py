"""A window of a lock's history that has no order whatever happened before.

If a search takes long, mostly there is no order, and all ways to reach the operation that it cannot
get past are tried, from the beginning on. A few operations before that one usually suffice to show
it. They are searched by themselves: operations under way when they begin may have happened or not,
the last token is unknown, and each client may have been granted the lock before, as often as it has
operations in the window. That allows more than the real past; so if there is no order of these,
there is none of all.

That many grants suffice: of more than that, a client gives back the others by unconfirmed releases,
or not at all. Then both may be left out, those releases from the first one on: the client still has
a grant for each of its confirmed operations to come. And a grant is only needed right before one of
these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lockcheck.history.table import NEVER, NO_TOKEN, NOTHING, Ints, Op, Outcome, Table

SIZES = (60, 600)  # operations


@dataclass(frozen=True, slots=True)
class Window:
    """The operations of the window, preceded by the possible earlier grants."""

    table: Table
    until: Ints | None
    rows: Ints  # of the whole table; -1 for a possible earlier grant


def window(table: Table, until: Ints | None, last_ns: int, size: int) -> Window | None:
    """The last `size` operations that began by `last_ns`; None if there are no more than that."""
    beyond = int(np.searchsorted(table.start, last_ns, "right"))
    first = beyond - size
    if first <= 0:
        return None
    since_ns = int(table.start[first])
    rows = np.arange(beyond)
    unsure = (table.outcome[rows] == Outcome.INFO) | (table.start[rows] < since_ns)
    unsure |= table.end[rows] > last_ns
    there = (table.outcome[rows] != Outcome.FAIL) & (table.end[rows] >= since_ns)
    held = rows[there & ~unsure]  # each may be about an earlier grant,
    there &= (table.f[rows] != Op.ACQUIRE) | (table.start[rows] >= since_ns)  # this one or another
    rows, unsure = rows[there], unsure[there]
    both = table.take(np.concatenate((held, rows)))
    before = np.arange(len(both)) < len(held)
    both.f[before], both.start[before], both.token[before] = Op.ACQUIRE, since_ns, NO_TOKEN
    both.shared[before] = True  # with more beside it than one that is not
    both.turn[before] = NOTHING
    unsure = np.append(before[: len(held)], unsure)
    both.outcome[unsure], both.end[unsure] = Outcome.INFO, NEVER
    numbers = np.where(before, -1, np.concatenate((held, rows)))
    order = np.argsort(both.start, kind="stable")
    promised = None if until is None else until[np.concatenate((held, rows))][order]
    return Window(both.take(order), promised, numbers[order])
