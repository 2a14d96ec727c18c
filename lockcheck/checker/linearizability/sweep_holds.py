"""Holds: stretches of a client's confirmed operations between which nobody else may have the lock.

The first of them has taken effect by `begin` (its answer), the last not before `end` (the
invocation of what ended the hold). One hold can come before another exactly when the other's
`begin` is not before its own `end`. So a hold whose `end` is after its `begin` keeps everybody
else out for that time, and another one fits in at a moment of its own choice between the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lockcheck.checker.linearizability.sweep_clients import Clients, Flags, Spots
from lockcheck.history.table import NEVER, Ints, Op

NOWHERE = -1
PLENTY = 1 << 40


@dataclass(frozen=True, slots=True)
class Holds:
    clients: Clients
    first: Spots  # of its first confirmed operation
    last: Spots  # of its last one: its release, where that was confirmed
    cut: Spots  # of the release that nobody confirmed but that ended it, or NOWHERE
    begin: Ints
    end: Ints
    token: Ints
    granted: Flags  # it surely begins with a grant of its own, which takes a token

    def __len__(self) -> int:
        return len(self.first)

    @property
    def key(self) -> Ints:
        return self.clients.key(self.first)

    def take(self, which: Spots | Flags) -> Holds:
        return Holds(
            self.clients,
            self.first[which],
            self.last[which],
            self.cut[which],
            self.begin[which],
            self.end[which],
            self.token[which],
            self.granted[which],
        )


@dataclass(frozen=True, slots=True)
class Breaks:
    """Between which of the marks a client had the lock no longer; numbers of `clients.marks`."""

    after: Flags  # for each mark
    special: Spots  # of those the ones that no confirmed release explains, in order, and
    end: Ints  # from when on they can have happened (the invocation of the mark at least),
    cut: Spots  # by which unconfirmed release; NOWHERE: by the end of a lease
    optional: Flags | None  # for each mark: the break after it need not have happened
    joining: bool = False  # and then what comes before and after it can be one hold, and one grant
    unsure: Flags | None = None  # for each mark: its hold need not have had a grant of its own


@dataclass(frozen=True, slots=True)
class Trouble:
    """Marks that no unconfirmed operation explains: without a grant, or granted twice."""

    ungranted: Spots
    granted_twice: Spots
    lent: Spots  # marks that an unconfirmed acquire explains, or would have to

    @property
    def spots(self) -> Spots:
        return np.concatenate((self.ungranted, self.granted_twice))

    def __len__(self) -> int:
        return len(self.ungranted) + len(self.granted_twice)


def holds_of(clients: Clients, breaks: Breaks, *, tokens: bool) -> Holds:
    marks = clients.marks
    last = np.flatnonzero(breaks.after)
    first = np.empty_like(last)
    if len(last):
        first[0], first[1:] = 0, last[:-1] + 1
    end, cut = clients.start[marks[last]], np.full(len(last), NOWHERE)
    at = np.searchsorted(last, breaks.special)
    end[at] = np.maximum(end[at], breaks.end)
    cut[at] = breaks.cut
    begin = clients.end[marks[first]]
    granted = np.ones(len(first), bool)
    if breaks.optional is not None:
        granted[1:] = ~breaks.optional[last[:-1]]
        granted &= ~(breaks.optional[last] & breaks.joining)
    if breaks.unsure is not None and len(first):
        granted &= ~np.logical_or.reduceat(breaks.unsure, first)
    token = np.zeros(0, np.int64)
    if tokens:
        told = clients.token(marks)
        token = np.maximum.reduceat(told, first) if len(first) else told
    else:
        token = np.broadcast_to(np.int64(0), len(first))
    return Holds(clients, marks[first], marks[last], cut, begin, end, token, granted)


@dataclass(frozen=True, slots=True)
class Supply:
    """Who can be explained by which of the unconfirmed operations of the same client.

    Each of `needing` takes one of `spare` that was invoked before it, and no spare one is taken
    twice. The nth that needs one finds one exactly when n of them were invoked before it.
    """

    clients: Clients
    spare: Spots
    needing: Spots
    nth: Spots  # among those of its client, from 1
    slack: Spots  # how many more were invoked before it than were needed up to it
    from_spare: Spots  # the earliest that it can take so that all others find theirs
    room: Spots  # the smallest slack from it on

    @staticmethod
    def of(clients: Clients, spare: Spots, needing: Spots) -> Supply:
        client = clients.client(needing)
        nth = np.arange(len(needing)) - np.searchsorted(client, client) + 1
        lowest = np.searchsorted(spare, clients.starts[client])
        slack = np.searchsorted(spare, needing) - lowest - nth
        tight = np.where(slack == 0, lowest + nth, 0)
        before = np.zeros(len(needing), np.intp)
        before[1:] = np.maximum.accumulate(tight)[:-1]
        room = np.where(slack < 0, PLENTY, slack) + client * (2 * PLENTY)
        room = np.minimum.accumulate(room[::-1])[::-1] - client * (2 * PLENTY)
        return Supply(clients, spare, needing, nth, slack, np.maximum(before, lowest), room)

    @property
    def lacking(self) -> Spots:
        return self.needing[self.slack < 0]

    def one_more(self, spots: Spots, client: Spots) -> tuple[Flags, Spots]:
        """Whether one more could be taken before each of `spots`, and the earliest that could."""
        lowest = np.searchsorted(self.spare, self.clients.starts[client])
        supplied = np.searchsorted(self.spare, spots) - lowest
        if len(self.needing) == 0:
            return supplied > 0, lowest
        after = np.searchsorted(self.needing, spots, "right")
        owner = self.clients.client(self.needing)
        last = np.maximum(after - 1, 0)
        some = (after > 0) & (owner[last] == client)
        tight = np.where(self.slack[last] == 0, lowest + self.nth[last], self.from_spare[last])
        earliest = np.where(some, tight, lowest)
        coming = np.minimum(after, len(owner) - 1)
        later = (after < len(owner)) & (owner[coming] == client)
        room = np.where(later, self.room[coming], PLENTY)
        return (supplied - np.where(some, self.nth[last], 0) > 0) & (room > 0), earliest


def promised_since(until: Ints, fresh: Flags) -> Ints:
    """For each mark the latest promise since the last `fresh` one."""
    values, ranks = np.unique(until, return_inverse=True)
    group = np.cumsum(fresh) * len(values)
    latest: Ints = values[np.maximum.accumulate(ranks + group) - group]
    return latest


def first_marks(clients: Clients) -> Flags:
    """For each mark whether its client has no earlier one."""
    first = np.zeros(len(clients.marks) + 1, bool)
    first[np.searchsorted(clients.marks, clients.starts)] = True
    return first[:-1]


def start_of(clients: Clients, spare: Spots, which: Spots, there: Flags) -> Ints:
    """When the unconfirmed operations were invoked; NEVER where there is none."""
    if len(spare) == 0:
        return np.full(len(which), NEVER)
    return np.where(there, clients.start[spare[np.minimum(which, len(spare) - 1)]], NEVER)


def releases(clients: Clients, marks: Spots) -> Flags:
    return np.equal(clients.f[marks], Op.RELEASE)
