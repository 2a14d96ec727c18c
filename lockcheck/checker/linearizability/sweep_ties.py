"""Operations of one client that touch: one ends in the nanosecond in which the next one begins.

Equal times are concurrent, so the two may have happened in the other order, both at that instant.
Where the plain explanation works this is of no interest. What fails only counts as impossible if
no other order would have helped; `Ties` says where one could.

Which another order cannot help: what is placed at one instant of a client is a stretch of its
operations, and how deep the client is inside before and after it does not depend on their order. So
if a stretch is fine as it was written down, another order of it needs more from elsewhere and
leaves the client where it was. Four things remain:

- a release and the grant that follows it (`flips`): the client may have been out long before, by
  a release that nobody confirmed or by the end of its lease, and was let in and left at that
  instant. Then it is out after it too, and the next such pair can be another one, and so on;
- a grant inside a hold and its release: the other way round the client is out at that instant;
- something that was unexplained as it was written down: see `slipping`;
- two grants whose tokens are in the wrong order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lockcheck.checker.linearizability.sweep_clients import NO_PROMISE, Clients, Flags, Spots
from lockcheck.checker.linearizability.sweep_holds import Breaks
from lockcheck.history.table import NEVER, NO_TOKEN, Ints, Op


@dataclass(frozen=True, slots=True)
class Doubts:
    """Marks of clients of which `lenient` may not be believed, because of operations that touch."""

    slipping: Flags  # not where something of them is unexplained
    blurred: Flags  # in nothing


@dataclass(frozen=True, slots=True)
class Ties:
    """For each mark of all clients; numbers are numbers of `clients.marks`."""

    clients: Clients
    client: Spots
    final: Flags  # the last mark of its client
    acquires: Flags
    releases: Flags
    grant_before: Spots  # the last grant of its client before it, or -1
    grant_after: Spots  # the next grant of its client, or -1
    grant_at_end: Flags  # that one begins in the nanosecond in which this one ends
    release_at_end: Flags  # the same of a release
    release_at_start: Flags  # a release ended in the nanosecond in which this one begins
    grant_at_start: Flags

    @staticmethod
    def of(clients: Clients) -> Ties:
        marks = clients.marks
        f, start, end = clients.f[marks], clients.start[marks], clients.end[marks]
        client = clients.client(marks)
        final = np.ones(len(marks), bool)
        final[:-1] = client[1:] != client[:-1]
        acquires, releases = f == Op.ACQUIRE, f == Op.RELEASE
        grant_before, grant_after = _before(acquires, client), _after(acquires, client)
        release_before, release_after = _before(releases, client), _after(releases, client)
        return Ties(
            clients,
            client,
            final,
            acquires,
            releases,
            grant_before,
            grant_after,
            (grant_after >= 0) & (start[grant_after] == end),
            (release_after >= 0) & (start[release_after] == end),
            (release_before >= 0) & (end[release_before] == start),
            (grant_before >= 0) & (end[grant_before] == start),
        )

    def flipped(self, source: Flags) -> Flags:
        """Releases (and renewals) that a grant at their end may have come before: `source` tells
        of which of them the client can have been out before; and so it goes on to the next ones."""
        tied = np.flatnonzero(~self.acquires & self.grant_at_end)
        flipped = np.zeros(len(source), bool)
        if len(tied) == 0:
            return flipped
        linked = np.zeros(len(tied), bool)
        own = self.grant_before[tied[1:]]
        linked[1:] = (own >= 0) & (
            (self.grant_after[tied[:-1]] == own) | (self.grant_before[tied[:-1]] == own)
        )
        place = np.arange(len(tied))
        begun = np.maximum.accumulate(np.where(linked, 0, place))
        latest = np.maximum.accumulate(np.where(source[tied], place, -1))
        flipped[tied] = latest >= begun
        return flipped

    def loose(self, flipped: Flags) -> Flags:
        """After which marks the client can have been out, given these."""
        loose = ~self.acquires & ~self.releases & self.release_at_start
        loose[:-1] |= flipped[1:] & ~self.final[:-1]
        grants = np.unique(self.grant_after[flipped])
        beyond = np.append(self.clients.marks, len(self.clients.row))[grants + 1]
        invoked = np.searchsorted(self.clients.maybe_acquired, beyond)
        mine = np.searchsorted(
            self.clients.maybe_acquired, self.clients.starts[self.client[grants]]
        )
        following = np.minimum(grants + 1, len(flipped) - 1)
        out = self.final[grants] | self.acquires[following] | (invoked > mine)
        loose[grants[out]] = True
        return loose

    def swapped_tokens(self) -> Flags:
        """For each mark: a grant at the same instant as the one before, and tokens that do not
        grow, or of which one was not told."""
        token = self.clients.token(self.clients.marks)
        before = self.grant_before
        grown = (token > token[before]) & (token[before] != NO_TOKEN)
        swapped: Flags = self.acquires & self.grant_at_start & ~grown
        return swapped

    def ungranted(self, lent: Flags) -> Flags:
        """Of the marks that an unconfirmed acquire explains, those whose hold need not have begun
        with that: in another order of what touches, another grant explains them."""
        clients, marks = self.clients, self.clients.marks
        maybe = clients.maybe_acquired
        following = np.searchsorted(marks, maybe)
        own = np.minimum(following, len(marks) - 1)
        tied = (following < len(marks)) & (clients.end[marks[own]] == clients.start[maybe])
        some = np.zeros(len(clients.starts), bool)
        some[clients.client(maybe[tied])] = True
        some[self.client[self.acquires & self.release_at_end]] = True
        return lent & (self.grant_at_end | self.release_at_start | some[self.client])

    def slipping(self, lacking: Flags, stays: Flags) -> Flags:
        """Of the marks that an unconfirmed operation or a lease has to explain (a grant to who had
        it, a release or renewal by who did not), those that need none in another order.

        What is lacking at one then shifts to the next pair, along a chain of pairs that all touch;
        `stays` tells where the chain ends with a mark at which it is lacking still.
        """
        renewal = ~self.acquires & ~self.releases
        slips = lacking & renewal & (self.grant_at_end | self.release_at_start)
        slips |= lacking & self.acquires & self.release_at_end & ~stays
        slips |= lacking & self.releases & self.grant_at_end & ~stays
        return slips

    def until_next(self, fixed: Flags, other: Flags) -> Spots:
        """For each mark the next `fixed` one of its client if no `other` one comes before it, and
        nobody left anything unconfirmed on the way; else -1."""
        clients, client = self.clients, self.client
        stop, way_out = _after(fixed, client), _after(other, client)
        stays = (stop >= 0) & ((way_out < 0) | (stop < way_out))
        maybe = np.sort(np.concatenate((clients.maybe_acquired, clients.maybe_released)))
        here, there = clients.starts[client], clients.marks[stop]
        quiet = np.searchsorted(maybe, here) == np.searchsorted(maybe, there)
        return np.where(stays & quiet, stop, -1)

    def least_promised(self) -> Ints | None:
        """What holds were promised at least: which grants and renewals of an instant belong to
        which hold is open."""
        clients = self.clients
        if clients.until is None:
            return None
        until = clients.until.copy()
        grants = np.flatnonzero(self.acquires)
        if len(grants) == 0:
            return until
        alone = np.flatnonzero(~self.grant_at_start[grants])
        size = np.diff(np.append(alone, len(grants)))
        until[grants] = np.repeat(np.minimum.reduceat(until[grants], alone), size)
        until[~self.acquires & (self.release_at_start | self.grant_at_end)] = NO_PROMISE
        return until


def _before(some: Flags, client: Spots) -> Spots:
    """The last one of these before each mark, of its client, or -1."""
    place = np.maximum.accumulate(np.where(some, np.arange(len(some)), -1))
    before = np.full(len(some), -1)
    before[1:] = place[:-1]
    return np.where((before >= 0) & (client[before] == client), before, -1)


def _after(some: Flags, client: Spots) -> Spots:
    count = len(some)
    turned = _before(some[::-1], client[::-1])[::-1]
    return np.where(turned >= 0, count - 1 - turned, -1)


def released_anyway(over: Flags, clients: Clients, marks: Spots) -> Ints:
    """When the release was invoked that ends the holds of these marks in any case: `over` tells
    after which marks that is so. NEVER where there is none."""
    coming = _after(over, clients.client(clients.marks))[marks]
    return np.where(coming >= 0, clients.start[clients.marks[coming]], NEVER)


def loosened(breaks: Breaks, loose: Flags, end: Ints) -> Breaks:
    """The same with holds that may have ended after these marks, from then on."""
    if not loose.any():
        return breaks
    fresh = np.flatnonzero(loose & ~breaks.after)
    after = breaks.after | loose
    ends = np.full(len(after), np.iinfo(np.int64).min)
    cut = np.full(len(after), -1)
    ends[breaks.special], cut[breaks.special] = breaks.end, breaks.cut
    known = np.zeros(len(after), bool)
    known[breaks.special] = True
    sooner = loose & (~known | (end < ends))
    # A confirmed release ends its hold as early as can be.
    sooner &= ~(breaks.after & ~known)
    ends[sooner], cut[sooner] = end[sooner], -1
    special = np.flatnonzero(known | sooner)
    optional = np.zeros(len(after), bool) if breaks.optional is None else breaks.optional.copy()
    optional[fresh] = True
    return replace(
        breaks, after=after, special=special, end=ends[special], cut=cut[special], optional=optional
    )
