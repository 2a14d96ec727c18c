"""The holds of a lock that its owner may enter again: from its first grant until it left as often.

How deep a client is inside follows from its confirmed operations. Unconfirmed ones change that:

- A client that leaves (or renews) where it is not inside was let in by an unconfirmed acquire
  that was invoked before; `depth` contains as many of these as are needed, and no more. All others
  may be taken as never granted, as for every lock.
- Unconfirmed releases may have happened as long as the client's later operations stay possible,
  and the earlier the better for everybody else. How many can have by a certain operation is the
  smaller one of how many were invoked by then, and of how deep the client is at least from there
  on; both only grow, so there is one choice that is best everywhere, and `left` is it.

That is exact where no unconfirmed acquire is to spare. With a spare one a client may leave more
often and be let in again: `lenient` allows this wherever it can have happened once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lockcheck.checker.linearizability.sweep_believed import as_confirmed, believed, of_others
from lockcheck.checker.linearizability.sweep_clients import Clients, Flags, Spots
from lockcheck.checker.linearizability.sweep_holds import (
    NOWHERE,
    PLENTY,
    Breaks,
    Supply,
    Trouble,
    first_marks,
    promised_since,
    start_of,
)
from lockcheck.checker.linearizability.sweep_ties import Doubts, Ties, loosened, released_anyway
from lockcheck.history.table import NEVER, NO_TOKEN, Ints, Op

ROUNDS = 8  # of leases that end and so make it possible that others do


@dataclass(frozen=True, slots=True)
class Depth:
    """How deep each client is inside after each of its marks."""

    clients: Clients
    client: Spots
    final: Flags  # the last mark of its client
    depth: Ints  # with the unconfirmed acquires that are needed
    lent: Ints  # how many these are
    bottom: Ints  # how deep it has to be at that mark at least
    bound: Flags  # the hold is certainly not over after it: the same token is told again
    ungranted: Supply
    could_leave: Ints  # how many unconfirmed releases were invoked before the next mark

    @staticmethod
    def of(clients: Clients, *, tokens: bool) -> Depth:
        marks = clients.marks
        f = clients.f[marks]
        first = first_marks(clients)
        client = np.cumsum(first) - 1
        final = np.ones(len(marks), bool)
        final[:-1] = first[1:]
        bound = _bound(clients, client, _told(clients)) if tokens else np.zeros(len(marks), bool)
        bottom = (bound | (f == Op.RENEW)).astype(np.int64)
        steps = (f == Op.ACQUIRE).astype(np.int64)
        steps -= f == Op.RELEASE
        depth = np.cumsum(steps)
        depth -= (depth - steps)[first][client]
        lent = _largest_so_far(np.maximum(bottom - depth, 0), client)
        grown = lent.copy()
        grown[1:] -= lent[:-1]
        needing = marks[((grown > 0) & ~first) | (first & (lent > 0))]
        ungranted = Supply.of(clients, clients.maybe_acquired, needing)
        depth += lent
        counted = _counted(clients, clients.maybe_released)
        return Depth(clients, client, final, depth, lent, bottom, bound, ungranted, counted)

    def room(self, more: Ints | int = 0) -> Ints:
        """How much less deep a client could be from the next mark on."""
        rest = _smallest_from(self.depth - self.bottom + more, self.client)
        coming = np.full(len(rest), PLENTY)
        coming[:-1] = np.where(self.final[:-1], PLENTY, rest[1:])
        return coming

    def limit(self) -> Ints:
        """When the next mark of the client was answered."""
        answered = np.full(len(self.depth), NEVER)
        answered[:-1] = self.clients.end[self.clients.marks[1:]]
        return np.where(self.final, NEVER, answered)


def plain(clients: Clients, *, tokens: bool) -> tuple[Clients, Breaks, Trouble]:
    happened = believed(clients)
    some = as_confirmed(clients, happened)
    breaks, trouble = _plain(some, tokens=tokens)
    if len(happened) and len(trouble):
        some = as_confirmed(clients, of_others(clients, happened, trouble.spots))
        breaks, trouble = _plain(some, tokens=tokens)
    return some, breaks, trouble


def _plain(clients: Clients, *, tokens: bool) -> tuple[Breaks, Trouble]:
    depth = Depth.of(clients, tokens=tokens)
    left = left_by(depth)
    expired = np.zeros(len(left), bool)
    ending = _Ending(left == depth.depth, left, expired, np.full(len(left), NEVER))
    ending.after[depth.bound] = False
    if clients.until is not None:
        ending = _with_leases(depth, left, clients.until)
    after = ending.after | depth.final
    special = np.flatnonzero(after & (depth.depth > 0))
    released = (ending.after & ~ending.expired)[special]
    end, cut = _released(depth, special, ending.nth[special], released)
    promised = ending.promised[special]
    cut[promised < end] = NOWHERE
    trouble = _trouble(depth, after, tokens=tokens)
    return Breaks(after, special, np.minimum(end, promised), cut, None), trouble


@dataclass(frozen=True, slots=True)
class _Ending:
    after: Flags  # after which marks the client is out
    nth: Ints  # by which of its unconfirmed releases, from 1; 0: it needs none
    expired: Flags  # only because its lease ended
    promised: Ints  # when a lease that can have ended here could


def left_by(depth: Depth) -> Ints:
    """How many unconfirmed releases may have happened before the next mark, at most."""
    bottom = np.minimum(depth.depth - depth.bound, depth.room())
    return np.minimum(depth.could_leave, np.maximum(bottom, 0))


def lenient(clients: Clients, ties: Ties, *, tokens: bool) -> tuple[Breaks, Trouble, Doubts]:
    clients = replace(clients, until=ties.least_promised())
    depth = Depth.of(clients, tokens=tokens)
    loose, inside = _out_between(ties, depth)
    spare = _spare(depth)
    possible = ~depth.bound & (depth.depth <= depth.room(spare))
    until = clients.until_of(np.arange(len(clients.marks)))
    after, before = _leaving(depth, possible, until)
    if clients.until is not None:
        fresh = np.ones(len(after), bool)
        fresh[1:] = (after | depth.final | loose | inside)[:-1]
        until = promised_since(until, fresh)
        after, before = _leaving(depth, possible, until)
    after |= depth.final
    special = np.flatnonzero(after & (depth.depth > 0))
    needed = (depth.depth - before)[special]
    fits = (possible & (depth.could_leave >= depth.depth - before))[special]
    end, cut = _released(depth, special, needed, fits)
    promised = np.where(possible[special], until[special], NEVER)
    cut[promised < end] = NOWHERE
    sooner = released_anyway(ties.releases & (depth.depth == 0), clients, special)
    cut[sooner < np.minimum(end, promised)] = NOWHERE
    end = np.minimum(np.minimum(end, promised), sooner)
    certain = (depth.depth == 0) & (spare <= 0) & ~ties.grant_at_end
    trouble = _trouble(depth, after | loose | inside, tokens=tokens)
    unsure = ties.ungranted(~ties.acquires & (depth.lent > 0)) | (
        ~ties.acquires & ties.grant_at_end
    )
    breaks = Breaks(after, special, end, cut, ~certain & ~depth.final, True, unsure)
    breaks = loosened(breaks, loose, clients.start[clients.marks])
    breaks = loosened(breaks, inside, depth.limit())
    return breaks, trouble, Doubts(_slipping(ties, depth, trouble), _shallow(ties, depth))


def _shallow(ties: Ties, depth: Depth) -> Flags:
    """Marks of a client that may have been less deep inside from there on, and may leave sooner."""
    clients = depth.clients
    leaving = np.full(len(clients.starts), clients.until is not None)
    leaving[clients.client(clients.maybe_released)] = True
    borrowed = ties.grant_at_end & ((depth.lent > 0) | _expired(clients))
    renewing = ~ties.releases & ties.release_at_start
    shallow: Flags = ~ties.acquires & leaving[ties.client] & (borrowed | renewing)
    return shallow


def _out_between(ties: Ties, depth: Depth) -> tuple[Flags, Flags]:
    """After which marks the client can have been out, because of an order of touching operations:
    by a pair that `Ties` calls flipped, or by leaving and entering again inside of a hold."""
    clients, marks = depth.clients, depth.clients.marks
    inside = np.zeros(len(marks), np.int64)
    inside[1:] = np.where(depth.final[:-1], 0, (depth.depth - depth.could_leave)[:-1])
    borrowed = depth.lent > 0
    flipped = ties.flipped((inside <= 0) | borrowed | _expired(clients))
    short = np.zeros(len(marks), bool)
    short[:-1] = clients.start[marks[1:]] == clients.end[marks[1:]]
    out = ties.acquires & ties.release_at_end & ((inside <= 1) | short | borrowed)
    before = np.zeros(len(marks), bool)
    before[:-1] = out[1:] & ~depth.final[:-1] & ~depth.bound[:-1] & (depth.depth[:-1] > 0)
    return ties.loose(flipped) & ~depth.bound, before


def _expired(clients: Clients) -> Flags:
    """Marks before whose answer the lease can have ended that was promised last."""
    expired = np.zeros(len(clients.marks), bool)
    if clients.until is not None:
        expired[1:] = clients.until[:-1] <= clients.end[clients.marks[1:]]
    return expired


def _slipping(ties: Ties, depth: Depth, trouble: Trouble) -> Flags:
    marks, nothing = depth.clients.marks, np.zeros(len(depth.depth), bool)
    mixed, lent = nothing.copy(), nothing.copy()
    mixed[np.searchsorted(marks, trouble.granted_twice)] = True
    lent[np.searchsorted(marks, trouble.lent)] = True
    fresh = ties.acquires & ~mixed
    fixed_grants = mixed & ~ties.release_at_end & ~ties.grant_at_start
    fixed_others = ~ties.acquires & ~ties.grant_at_end & ~ties.release_at_start
    fixed_others &= depth.depth == np.where(ties.releases, 0, 1)
    stays = np.where(
        ties.acquires,
        ties.until_next(fixed_grants, fresh) >= 0,
        ties.until_next(fixed_others, nothing) >= 0,
    )
    if depth.clients.until is not None:
        stays &= ~ties.acquires
    slipping = ties.slipping(mixed | lent, stays)
    early = (depth.could_leave > 0) | (depth.lent > 0) | _expired(depth.clients)
    tied: Flags = ~ties.acquires & ties.grant_at_end & early
    return slipping | tied


def _trouble(depth: Depth, after: Flags, *, tokens: bool) -> Trouble:
    lent = depth.ungranted
    return Trouble(lent.lacking, _mixed(depth, after, tokens=tokens), lent.needing)


def _spare(depth: Depth) -> Ints:
    """How many unconfirmed acquires were invoked before each mark and are not needed by it."""
    marks = depth.clients.marks
    lowest = np.searchsorted(depth.clients.maybe_acquired, depth.clients.starts)
    invoked = np.searchsorted(depth.clients.maybe_acquired, marks)
    return invoked - lowest[depth.clients.client(marks)] - depth.lent


def _leaving(depth: Depth, possible: Flags, until: Ints) -> tuple[Flags, Ints]:
    """After which marks a client can have left for good, and how deep it was at most when its
    lease can have ended before: so many releases are not needed."""
    ended = possible & (until <= depth.limit()) & ~depth.final
    before = np.zeros(len(ended), np.int64)
    if ended.any():
        deepest = _largest_so_far(np.where(ended, depth.depth, 0), depth.client)
        before[1:] = np.where(depth.final[:-1], 0, deepest[:-1])
        before = np.minimum(before, depth.depth)
    return ended | (possible & (depth.could_leave >= depth.depth - before)), before


def _with_leases(depth: Depth, left: Ints, until: Ints) -> _Ending:
    """Leases end where that leaves the later operations possible, one after the other: what was
    promised counts from the beginning of a hold, and where one ended another begins."""
    room, limit = depth.room(), depth.limit()
    possible = ~depth.bound & (depth.depth <= room)
    expired, nth = np.zeros(len(left), bool), left
    for _ in range(ROUNDS):
        after = (left == depth.depth) & ~depth.bound
        fresh = np.ones(len(after), bool)
        fresh[1:] = (after | depth.final)[:-1]
        promised = promised_since(until, fresh)
        ends = possible & ~depth.final & ~after & (promised <= limit)
        if not ends.any():
            break
        expired = expired | ends
        left, nth = _since_expired(depth, left, nth, expired)
    over = possible & (after | depth.final) & (promised <= limit)
    return _Ending(after, nth, expired & after, np.where(over, promised, NEVER))


def _since_expired(depth: Depth, left: Ints, nth: Ints, expired: Flags) -> tuple[Ints, Ints]:
    """With a lease all levels end; later releases are free for what was entered since."""
    place = np.maximum.accumulate(np.where(expired, np.arange(len(expired)), NOWHERE))
    gone = depth.depth[place] + depth.could_leave - depth.could_leave[place]
    most = np.minimum(np.minimum(depth.depth - depth.bound, depth.room()), gone)
    better = (place >= 0) & (depth.client[place] == depth.client) & (most >= left)
    more = most - depth.depth[place]
    number = np.where(more > 0, depth.could_leave[place] + more, 0)
    return np.where(better, most, left), np.where(better, number, nth)


def _released(depth: Depth, at: Spots, nth: Ints, there: Flags) -> tuple[Ints, Spots]:
    """When the nth unconfirmed release of these clients was invoked, and which that is."""
    clients = depth.clients
    spare = clients.maybe_released
    client = clients.client(clients.marks[at])
    which = np.searchsorted(spare, clients.starts[client]) + nth - 1
    start = start_of(clients, spare, which, there & (nth > 0))
    start = np.where(there & (nth <= 0), clients.start[clients.marks[at]], start)
    cut = np.full(len(at), NOWHERE)
    some = there & (nth > 0)
    cut[some] = spare[which[some]]
    return start, cut


def _told(clients: Clients) -> Spots:
    return np.flatnonzero(clients.token(clients.marks) != NO_TOKEN)


def _bound(clients: Clients, client: Spots, told: Spots) -> Flags:
    token = clients.token(clients.marks[told])
    same = (client[told[1:]] == client[told[:-1]]) & (token[1:] == token[:-1])
    change = np.zeros(len(clients.marks) + 1, np.int8)
    change[told[:-1][same]] += 1
    change[told[1:][same]] -= 1
    return np.cumsum(change[:-1]) > 0


def _mixed(depth: Depth, after: Flags, *, tokens: bool) -> Spots:
    """Acquires that were told another token than the one before, in the same hold."""
    if not tokens:
        return np.zeros(0, np.intp)
    told = _told(depth.clients)
    token = depth.clients.token(depth.clients.marks[told])
    over = np.cumsum(after)
    number: Ints = over[told] - after[told]  # of the hold
    within: Flags = number[1:] == number[:-1]
    same = depth.client[told[1:]] == depth.client[told[:-1]]
    mixed: Spots = depth.clients.marks[told[1:][same & within & (token[1:] != token[:-1])]]
    return mixed


def _counted(clients: Clients, spare: Spots) -> Ints:
    """How many of the spare ones of its client come before the next mark, for each mark."""
    if len(spare) == 0:
        return np.zeros(len(clients.marks), np.int64)
    ends = np.append(clients.starts[1:], len(clients.row))
    client = clients.client(clients.marks)
    beyond = np.minimum(np.append(clients.marks[1:], len(clients.row)), ends[client])
    before: Ints = np.searchsorted(spare, clients.starts)[client]
    counted: Ints = np.searchsorted(spare, beyond) - before
    return counted


def _largest_so_far(values: Ints, client: Spots) -> Ints:
    apart = client * (2 * len(client))  # no depth is larger than there are operations
    largest: Ints = np.maximum.accumulate(values + apart) - apart
    return largest


def _smallest_from(values: Ints, client: Spots) -> Ints:
    apart = client * (4 * len(client) + 4)
    smallest: Ints = np.minimum.accumulate((values + apart)[::-1])[::-1] - apart
    return smallest
