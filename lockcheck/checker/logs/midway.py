"""Production logs: they begin while locks are held, and contain answers that prove nothing.

A lock that was granted before the log began is released or renewed in it. A client whose release
was not answered repeats it; a client whose acquire was not answered releases the lock to be sure,
and many services confirm any release. None of that is a mistake of the service, so it is corrected
before judging.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lockcheck.history.ordering import BEFORE_ALL, latest_before, order_by
from lockcheck.history.table import NEVER, Ints, Mask, Op, Outcome, Table


def cleaned(table: Table) -> Table:
    """The rows of a lock that only its owner releases, once; those that prove nothing are OTHER."""
    table = _repeated_as_one(_without(table, early(table)))
    table = _without(table, _precautionary_releases(table))
    return _without(table, _without_consequence(table))


def with_optional_releases(table: Table) -> Table:
    """For a lock that any client releases, or its owner once per level: the same rows; a confirmed
    release after an unanswered operation may have had nothing to release."""
    rows = _by_client(table, (table.outcome != Outcome.FAIL) & (table.f <= Op.RELEASE))
    spots = np.arange(1, len(rows))
    after = (table.f[rows] == Op.RELEASE)[1:] & (table.outcome[rows] == Outcome.OK)[1:]
    after &= (table.outcome[rows] == Outcome.INFO)[:-1] & _same(table, rows, spots, spots - 1)
    if not after.any():
        return table
    outcome = table.outcome.copy()
    outcome[rows[1:][after]] = Outcome.EITHER
    return replace(table, outcome=outcome)


def implicit_releases(table: Table, until: Ints | None) -> Ints | None:
    """Until when each grant counts if clients may crash and come back under the same name. A client
    that acquires again has given up its hold, and a service that knows it by name may grant or
    release at once. `table` is not `cleaned`."""
    unanswered = (table.outcome == Outcome.INFO) & (table.f == Op.ACQUIRE)
    rows = _by_client(table, unanswered | ((table.outcome == Outcome.OK) & (table.f <= Op.RENEW)))
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
    """Releases and renewals of clients that had not acquired before."""
    asks = np.flatnonzero(table.f == Op.ACQUIRE)
    later = np.flatnonzero((table.f == Op.RELEASE) | (table.f == Op.RENEW))
    width = int(table.owner.max(initial=0)) + 1
    client = (table.key.astype(np.int64) + 1) * width + table.owner
    asking, first = np.unique(client[asks], return_index=True)
    place = np.minimum(np.searchsorted(asking, client[later]), len(asking) - 1)
    if len(asking) == 0:
        return later
    acquired = (asking[place] == client[later]) & (asks[first[place]] < later)
    unacquired: Ints = later[~acquired]
    return unacquired


def _without(table: Table, rows: Ints) -> Table:
    if len(rows) == 0:
        return table
    f = table.f.copy()
    f[rows] = Op.OTHER
    return replace(table, f=f)


def _repeated_as_one(table: Table) -> Table:
    """Joins an unanswered release and its confirmed repetition: one release, as long as both."""
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


def _precautionary_releases(table: Table) -> Ints:
    """Releases after an unanswered acquire; an order without that hold, if any, is as good."""
    rows = _by_client(table, (table.outcome != Outcome.FAIL) & (table.f <= Op.RENEW))
    unsure = (table.f[rows] == Op.ACQUIRE) & (table.outcome[rows] == Outcome.INFO)
    spots = 1 + np.flatnonzero((table.f[rows[1:]] == Op.RELEASE) & unsure[:-1])
    found: Ints = rows[spots[_same(table, rows, spots, spots - 1)]]
    return found


def _without_consequence(table: Table) -> Ints:
    """Unanswered acquires without a sign that they were granted: an order without is as good."""
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


def _by_client(table: Table, which: Mask) -> Ints:
    """These rows, client after client of each lock."""
    rows = np.flatnonzero(which)
    ordered: Ints = rows[order_by(table.key[rows], table.owner[rows])]
    return ordered


def _next(which: Mask, places: Ints) -> Ints:
    """From each place on, the first one that is marked; -1 if there is none."""
    none = len(which)
    first = np.minimum.accumulate(np.append(np.where(which, np.arange(none), none), none)[::-1])
    found = first[::-1][np.where(places < 0, none, places)]
    return np.where(found == none, -1, found)


def _same(table: Table, rows: Ints, one: Ints, other: Ints) -> Mask:
    """Whether the rows are of the same client and lock; `other` may be -1 for none."""
    same: Mask = (table.key[rows[one]] == table.key[rows[other]]) & (other >= 0)
    same &= table.owner[rows[one]] == table.owner[rows[other]]
    return same
