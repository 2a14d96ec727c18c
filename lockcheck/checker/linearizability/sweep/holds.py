"""Holds: spans of a client's confirmed operations during which no other client may have the lock.

A hold begins with a granted acquire, renewals follow, and a release ends it. Without a confirmed
release, it may have ended when an unconfirmed one was invoked, or by itself once its promise was
over: the earliest of these is taken, since the earlier the lock is free the more orders are left.
An unconfirmed acquire is taken as never granted, unless the client's next operation needs it:
leaving it out keeps no client out. A client that in the middle of a hold asked for a release, then
for the lock again, is assumed to have released it.

The first operation of a hold has taken effect by `begin` (its answer), the last not before `end`
(the invocation of what ended the hold). One hold can come before another exactly if the other's
`begin` is not before its own `end`. So a hold whose `end` is after its `begin` excludes all others
for that time, and any other hold fits in at a moment of its choice between the two.

That is one explanation of the answers. For clients that do one operation at a time, and nothing
after an unconfirmed one, it is the only one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lockcheck.checker.linearizability.sweep.clients import NOWHERE, Clients, Spots
from lockcheck.history.table import NEVER, Ints, Mask, Op


@dataclass(frozen=True, slots=True)
class SweepHolds:
    """The holds of all clients, as columns."""

    clients: Clients
    first: Spots  # its first confirmed operation
    last: Spots  # its last one: the release, if that was confirmed
    cut: Spots  # the unconfirmed release that ended it, or NOWHERE
    begin: Ints
    end: Ints
    token: Ints

    def __len__(self) -> int:
        return len(self.first)

    @property
    def key(self) -> Ints:
        return self.clients.key(self.first)

    def take(self, which: Spots | Mask) -> SweepHolds:
        columns = (self.first, self.last, self.cut, self.begin, self.end, self.token)
        return SweepHolds(self.clients, *(column[which] for column in columns))


def holds_of(clients: Clients, *, tokens: bool) -> tuple[SweepHolds, Spots]:
    """The holds, and the spots without an explanation: used without a grant, or granted twice."""
    marks = clients.marks
    f = clients.f[marks]
    fresh = np.zeros(len(marks) + 1, bool)
    fresh[np.searchsorted(marks, clients.starts)] = True  # the first mark of a client, or beyond
    fresh = fresh[:-1]
    free = fresh.copy()
    free[1:] |= f[:-1] == Op.RELEASE
    begins = free | (f == Op.ACQUIRE) | _released_and_reacquired(clients, fresh)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(marks))[: len(first)] - 1
    end, cut, unended = _ends(clients, first, last)
    token = clients.token(marks[first]) if tokens else np.zeros(len(first), np.int64)
    begin = clients.end(marks[first])
    ungranted = np.flatnonzero(begins & (f != Op.ACQUIRE))
    ungranted = ungranted[~_asked_before(clients, ungranted, fresh)]
    unexplained = np.concatenate((marks[ungranted], marks[unended]))
    return SweepHolds(clients, marks[first], marks[last], cut, begin, end, token), unexplained


def _released_and_reacquired(clients: Clients, fresh: Mask) -> Mask:
    """For each mark whether its client released and acquired, unconfirmed, since the last one."""
    marks, acquired, released = clients.marks, clients.maybe_acquired, clients.maybe_released
    back = np.zeros(len(marks), bool)
    if len(acquired) == 0 or len(released) == 0:
        return back
    left = np.append(released, len(clients.row))[np.searchsorted(released, marks[:-1])]
    asked = np.append(acquired, len(clients.row))[np.searchsorted(acquired, left)]
    back[1:] = (asked < marks[1:]) & ~fresh[1:]
    return back


def _asked_before(clients: Clients, which: Spots, fresh: Mask) -> Mask:
    """For each of these marks whether an unanswered acquire came since the last one."""
    spots = clients.marks[which]
    first = clients.starts[clients.client(spots)]
    since = np.where(fresh[which], first, clients.marks[which - 1])
    asked = clients.maybe_acquired
    return np.searchsorted(asked, spots) > np.searchsorted(asked, since)


def _ends(clients: Clients, first: Spots, last: Spots) -> tuple[Ints, Spots, Spots]:
    """The earliest end of each hold; the unconfirmed release that ended it; and the marks that were
    granted again although nothing can have ended the hold before."""
    marks = clients.marks
    end, cut = clients.start(marks[last]), np.full(len(last), NOWHERE)
    open_ones = np.flatnonzero(clients.f[marks[last]] != Op.RELEASE)
    if len(open_ones) == 0:
        return end, cut, open_ones
    promised = np.full(len(open_ones), NEVER)
    if clients.until is not None:
        promised = np.maximum.reduceat(clients.until, first)[open_ones]
    spot = marks[last[open_ones]]
    beyond = np.append(marks, len(clients.row))[last[open_ones] + 1]
    again = beyond < np.append(clients.starts, len(clients.row))[clients.client(spot) + 1]
    released = _next_of(clients, clients.maybe_released, spot, beyond)
    start = clients.start(released)
    by_release = start < promised
    cut[open_ones[by_release]] = released[by_release]
    ended = np.minimum(start, promised)
    answered = clients.end(np.where(again, beyond, NOWHERE))
    end[open_ones] = np.maximum(end[open_ones], ended)
    return end, cut, last[open_ones][ended > answered] + 1


def _next_of(clients: Clients, some: Spots, spots: Spots, beyond: Spots) -> Spots:
    """For each spot the next one of `some`, of the same client and before `beyond`; or NOWHERE."""
    following = np.append(some, len(clients.row))[np.searchsorted(some, spots)]
    own = clients.client(np.minimum(following, len(clients.row) - 1)) == clients.client(spots)
    return np.where((following < beyond) & own, following, NOWHERE)
