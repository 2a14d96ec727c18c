"""Logs of somebody's day: they begin while locks are held, and say of a release what they said.

What was granted before the log is released in it, or renewed. Who is not told whether a release was
done asks for it again; and who is not told whether it was granted the lock releases it to be sure,
and many a service confirms that whatever it did. None of it says anything against the service, so
it is put right before anything is judged.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lockcheck.history.ordering import BEFORE_ALL, latest_before, order_by
from lockcheck.history.table import NEVER, Ints, Op, Outcome, Table


def as_told(table: Table) -> Table:
    """Of a lock that only its owner releases, once: the same rows, and what says nothing is of no
    kind that a model knows."""
    table = _repeated_as_one(_without(table, early(table)))
    table = _without(table, _to_be_sure(table))
    return _without(table, _without_consequence(table))


def as_counted(table: Table) -> Table:
    """Of a lock that anybody releases, or its owner as often as it entered: the same rows. What was
    to be released once more, or only to be sure, is as right if there was nothing to release."""
    rows = _by_client(table, (table.outcome != Outcome.FAIL) & (table.f <= Op.RELEASE))
    spots = np.arange(1, len(rows))
    after = (table.f[rows] == Op.RELEASE)[1:] & (table.outcome[rows] == Outcome.OK)[1:]
    after &= (table.outcome[rows] == Outcome.INFO)[:-1] & _same(table, rows, spots, spots - 1)
    if not after.any():
        return table
    outcome = table.outcome.copy()
    outcome[rows[1:][after]] = Outcome.EITHER
    return replace(table, outcome=outcome)


def let_go_unsaid(table: Table, until: Ints | None) -> Ints | None:
    """Until when each grant counts, where a client may have crashed, and come back under its name:
    when it asks again it has given up what it held, and the service, that may know it by its name,
    can grant it the lock, or let it release it, at once. `table` is as it was told."""
    asked = (table.outcome == Outcome.INFO) & (table.f == Op.ACQUIRE)
    rows = _by_client(table, asked | ((table.outcome == Outcome.OK) & (table.f <= Op.RENEW)))
    f, sure = table.f[rows], table.outcome[rows] == Outcome.OK
    held = np.flatnonzero(sure & (f != Op.RELEASE))
    then = _next(f != Op.RENEW, held + 1)
    shown = _next(sure, then)
    again = _same(table, rows, held, shown) & (f[then] == Op.ACQUIRE) & (f[shown] != Op.RENEW)
    if not again.any():
        return until
    counted = np.full(len(table), NEVER) if until is None else until.copy()
    held, then = rows[held[again]], rows[then[again]]
    counted[held] = np.minimum(counted[held], table.start[then])
    return counted


def early(table: Table) -> Ints:
    """Releases and renewals of those who had not asked for anything before."""
    asks = np.flatnonzero(table.f == Op.ACQUIRE)
    later = np.flatnonzero((table.f == Op.RELEASE) | (table.f == Op.RENEW))
    width = int(table.owner.max(initial=0)) + 1
    client = (table.key.astype(np.int64) + 1) * width + table.owner
    asking, first = np.unique(client[asks], return_index=True)
    place = np.minimum(np.searchsorted(asking, client[later]), len(asking) - 1)
    if len(asking) == 0:
        return later
    asked = (asking[place] == client[later]) & (asks[first[place]] < later)
    unasked: Ints = later[~asked]
    return unasked


def _without(table: Table, rows: Ints) -> Table:
    if len(rows) == 0:
        return table
    f = table.f.copy()
    f[rows] = Op.OTHER
    return replace(table, f=f)


def _repeated_as_one(table: Table) -> Table:
    """A release that nobody answered and the same once more, which was confirmed: it took effect
    at some moment between the first invocation and the last answer."""
    rows = _by_client(table, (table.outcome != Outcome.FAIL) & (table.f <= Op.RENEW))
    one, other = rows[:-1], rows[1:]
    same = (table.key[one] == table.key[other]) & (table.owner[one] == table.owner[other])
    same &= (table.f[one] == Op.RELEASE) & (table.f[other] == Op.RELEASE)
    repeated = np.flatnonzero(same & (table.outcome[one] == Outcome.INFO))
    if len(repeated) == 0:
        return table
    outcome, end = table.outcome.copy(), table.end.copy()
    for first, again in zip(one[repeated][::-1], other[repeated][::-1], strict=True):
        outcome[first], end[first] = outcome[again], end[again]
    return _without(replace(table, outcome=outcome, end=end), other[repeated])


def _to_be_sure(table: Table) -> Ints:
    """Releases of those who only know that they were not answered when they asked for it. If such
    a client did hold it, an order is as right without that hold."""
    rows = _by_client(table, (table.outcome != Outcome.FAIL) & (table.f <= Op.RENEW))
    unsure = (table.f[rows] == Op.ACQUIRE) & (table.outcome[rows] == Outcome.INFO)
    spots = 1 + np.flatnonzero((table.f[rows[1:]] == Op.RELEASE) & unsure[:-1])
    found: Ints = rows[spots[_same(table, rows, spots, spots - 1)]]
    return found


def _without_consequence(table: Table) -> Ints:
    """Acquires that nobody answered, and after which nothing shows that they were granted: an order
    is as right without that hold, and engines have less to try."""
    rows = _by_client(table, (table.outcome != Outcome.FAIL) & (table.f <= Op.RENEW))
    f, sure = table.f[rows], table.outcome[rows] == Outcome.OK
    spots = np.flatnonzero(~sure & (f == Op.ACQUIRE))
    after = _next(sure, spots)
    shown = _same(table, rows, spots, after) & (f[after] != Op.ACQUIRE)
    fresh = ~_same(table, rows, np.arange(len(rows)), np.arange(len(rows)) - 1)
    renewed = np.where(sure & (f == Op.RENEW), table.end[rows], BEFORE_ALL)
    crossed = latest_before(np.cumsum(fresh), renewed)[spots] >= table.start[rows[spots]]
    found: Ints = rows[spots[~shown & ~crossed]]
    return found


def _by_client(table: Table, which: NDArray[np.bool_]) -> Ints:
    """Rows, those of each client of a lock one after the other."""
    rows = np.flatnonzero(which)
    ordered: Ints = rows[order_by(table.key[rows], table.owner[rows])]
    return ordered


def _next(which: NDArray[np.bool_], places: Ints) -> Ints:
    """From each place on the first one that is one of these; -1 for none."""
    none = len(which)
    first = np.minimum.accumulate(np.append(np.where(which, np.arange(none), none), none)[::-1])
    found = first[::-1][np.where(places < 0, none, places)]
    return np.where(found == none, -1, found)


def _same(table: Table, rows: Ints, one: Ints, other: Ints) -> NDArray[np.bool_]:
    """One client of one lock; -1 is none."""
    same: NDArray[np.bool_] = (table.key[rows[one]] == table.key[rows[other]]) & (other >= 0)
    same &= table.owner[rows[one]] == table.owner[rows[other]]
    return same
