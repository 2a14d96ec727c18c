"""The holds of a lock that lets its owner enter once.

A client's confirmed operations tell when it had the lock: from a granted acquire up to its
release, renewals being between the two. Operations that nobody confirmed fill the gaps:

- An acquire after an acquire: something ended the first hold, a release that was invoked before
  the second grant was answered, or the end of the lease.
- A release or renewal without a grant: an acquire that was invoked before it did it.
- Elsewhere an unconfirmed acquire may be taken as never granted: to leave it out takes nothing
  from anybody and keeps nobody out. An unconfirmed release that is the client's last operation may
  be taken as done when it was invoked (or when the grant was, if that was answered later): that
  is the earliest moment, and the earlier the lock is free the more orders are left. Both are exact
  for clients that never go on, and cost nothing.

A client that goes on under the same name leaves a choice where it has more unconfirmed operations
than the gaps need: a spare release and a spare acquire may interrupt a hold for others. `plain`
takes each release where it was invoked, and others only where they are needed: if that explains
everything, there is an order. `lenient` lets each single hold end as early as any choice allows
and interrupts it wherever any choice can: what is impossible even then has no order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lockcheck.checker.linearizability.sweep_clients import Clients, Flags, Spots
from lockcheck.checker.linearizability.sweep_holds import (
    NOWHERE,
    Breaks,
    Supply,
    Trouble,
    first_marks,
    promised_since,
    start_of,
)
from lockcheck.checker.linearizability.sweep_pauses import pauses
from lockcheck.checker.linearizability.sweep_ties import Doubts, Ties, loosened, released_anyway
from lockcheck.history.table import NEVER, Ints, Op


def plain(clients: Clients) -> tuple[Breaks, Trouble]:
    paused = pauses(clients)
    breaks, trouble = _plain(paused.spent(clients))
    if len(paused) and len(trouble):
        paused = paused.without(clients, trouble.spots)
        breaks, trouble = _plain(paused.spent(clients))
    return paused.added(clients, breaks), trouble


def _plain(clients: Clients) -> tuple[Breaks, Trouble]:
    after, begins, ungranted = _shape(clients)
    runs = _Open.of(clients, after, _promised(clients, begins))
    spare = clients.maybe_released
    own = np.searchsorted(spare, clients.marks[runs.last])
    has_own = own < np.searchsorted(spare, runs.beyond)
    own_start = start_of(clients, spare, own, has_own)
    by_own = has_own & (own_start < runs.until)
    needing = runs.again & (runs.until > runs.limit) & ~by_own
    pool = np.delete(spare, own[by_own])
    others = Supply.of(clients, pool, runs.beyond[needing])
    tail = ~runs.again & ~by_own
    extra, which = others.one_more(runs.beyond[tail], runs.client[tail])
    end = np.where(by_own, own_start, runs.until)
    end[needing] = runs.start[needing]
    end[tail] = np.minimum(end[tail], start_of(clients, pool, which, extra))
    cut = np.full(len(end), NOWHERE)
    cut[by_own] = spare[own[by_own]]
    trouble = Trouble(ungranted.lacking, others.lacking, ungranted.needing)
    return Breaks(after, runs.last, end, cut, None), trouble


def lenient(clients: Clients, ties: Ties) -> tuple[Breaks, Trouble, Doubts]:
    after, begins, acquired = _shape(clients)
    clients = replace(clients, until=ties.least_promised())
    until = clients.until_of(np.arange(len(clients.marks)))
    split, released = _splits(clients, after, until, acquired)
    if clients.until is not None:  # a promise lasts for as long as nothing can have cut it
        fresh = begins.copy()
        fresh[1:] |= split[:-1]
        until = promised_since(until, fresh)
        split, released = _splits(clients, after, until, acquired)
    runs = _Open.of(clients, after | split, until)
    needed = _needed(runs, split)
    which, can = _earliest(released, runs, needed)
    start = start_of(clients, released.spare, which, can)
    end = np.minimum(start, runs.until)
    end[needed & ~can] = runs.start[needed & ~can]
    cut = np.full(len(end), NOWHERE)
    by_release = can & (start < runs.until)
    cut[by_release] = released.spare[which[by_release]]
    sooner = np.where(split[runs.last], released_anyway(ties.releases, clients, runs.last), NEVER)
    cut[sooner < end] = NOWHERE
    end = np.minimum(end, sooner)
    trouble = Trouble(acquired.lacking, released.lacking, acquired.needing)
    breaks = Breaks(after | split, runs.last, end, cut, split)
    flipped = ties.flipped(_out_before(ties, begins, released))
    doubts = Doubts(_slipping(ties, after, begins), _freeing(ties, flipped))
    return _with_ties(breaks, ties, begins, flipped), trouble, doubts


def _freeing(ties: Ties, flipped: Flags) -> Flags:
    """Flipped pairs after which the client is granted it again: what would have ended its hold in
    between is then to spare for later."""
    following = np.minimum(ties.grant_after + 1, len(flipped) - 1)
    again: Flags = ties.acquires[following] & (ties.client[following] == ties.client)
    return flipped & again


def _with_ties(breaks: Breaks, ties: Ties, begins: Flags, flipped: Flags) -> Breaks:
    unsure = ties.ungranted(begins & ~ties.acquires)
    start = ties.clients.start[ties.clients.marks]
    return loosened(replace(breaks, unsure=unsure), ties.loose(flipped), start)


def _out_before(ties: Ties, begins: Flags, released: Supply) -> Flags:
    """Releases and renewals before which the client can have been out already."""
    clients, marks = ties.clients, ties.clients.marks
    first = clients.starts[ties.client]
    invoked = np.searchsorted(released.spare, marks) - np.searchsorted(released.spare, first)
    used = np.searchsorted(released.needing, marks) - np.searchsorted(released.needing, first)
    return begins | (invoked > used) | _expired(clients)


def _expired(clients: Clients) -> Flags:
    """Marks before whose answer the lease can have ended that was promised last."""
    expired = np.zeros(len(clients.marks), bool)
    if clients.until is not None:
        expired[1:] = clients.until[:-1] <= clients.end[clients.marks[1:]]
    return expired


def _slipping(ties: Ties, after: Flags, begins: Flags) -> Flags:
    clients, others = ties.clients, ~ties.acquires
    again = np.zeros(len(after), bool)
    again[1:] = ~ties.releases[:-1] & ~ties.final[:-1]
    again &= ties.acquires
    ungranted = others & begins
    fixed_grants = ties.acquires & ~ties.release_at_end & ~ties.grant_at_start
    fixed_others = others & ~ties.grant_at_end & ~ties.release_at_start
    way_out = ungranted
    least = ties.least_promised()
    if least is not None:  # or a lease that may have ended on the way
        own = ties.grant_before
        ended = ties.acquires & (own >= 0) & (least[own] <= clients.end[clients.marks])
        fixed_grants, way_out = fixed_grants & ~ended, ungranted | ended
    stays = np.where(
        ties.acquires,
        ties.until_next(fixed_grants, way_out) >= 0,
        ties.until_next(fixed_others, again) >= 0,
    )
    slipping = ties.slipping(again | ungranted, stays)
    return slipping | (others & ties.grant_at_end & _expired(clients))


@dataclass(frozen=True, slots=True)
class _Open:
    """Where a client's hold ended without a confirmed release."""

    last: Spots  # the mark that is the last one of the hold
    client: Spots
    start: Ints
    beyond: Spots  # the spot of the client's next mark, or the end of its spots
    again: Flags  # there is a next mark
    limit: Ints  # when that was answered: it has to have ended by then
    until: Ints  # up to when it was promised

    @staticmethod
    def of(clients: Clients, after: Flags, promised: Ints | None) -> _Open:
        marks = clients.marks
        last = np.flatnonzero(after & (clients.f[marks] != Op.RELEASE))
        client = clients.client(marks[last])
        ends = np.append(clients.starts[1:], len(clients.row))[client]
        later = np.append(marks, len(clients.row))[last + 1]
        again = later < ends
        beyond = np.where(again, later, ends)
        limit = np.full(len(last), NEVER)
        limit[again] = clients.end[beyond[again]]
        until = np.full(len(last), NEVER) if promised is None else promised[last]
        return _Open(last, client, clients.start[marks[last]], beyond, again, limit, until)


def _shape(clients: Clients) -> tuple[Flags, Flags, Supply]:
    """After which marks a hold is over, with which one begins, and who needs a grant."""
    f = clients.f[clients.marks]
    begins = f == Op.ACQUIRE
    released = f == Op.RELEASE
    first = first_marks(clients)
    free = first.copy()
    free[1:] |= released[:-1]
    ungranted = np.flatnonzero(free & ~begins)
    begins |= free
    after = np.ones(len(f), bool)
    after[:-1] = begins[1:]
    needing = clients.marks[ungranted]
    return after, begins, Supply.of(clients, clients.maybe_acquired, needing)


def _promised(clients: Clients, begins: Flags) -> Ints | None:
    return None if clients.until is None else promised_since(clients.until, begins)


def _splits(clients: Clients, after: Flags, until: Ints, acquired: Supply) -> tuple[Flags, Supply]:
    """After which marks a hold may be interrupted: something can end it, and an acquire that
    nobody confirmed can begin it anew."""
    runs = _Open.of(clients, after, until)
    needing = runs.beyond[runs.again & (runs.until > runs.limit)]
    released = Supply.of(clients, clients.maybe_released, needing)
    inside = np.flatnonzero(~after)
    beyond = clients.marks[inside + 1]
    client = clients.client(beyond)
    anew, _ = acquired.one_more(beyond, client)
    cut, _ = released.one_more(beyond, client)
    split = np.zeros(len(after), bool)
    split[inside] = anew & (cut | (until[inside] <= clients.end[beyond]))
    return split, released


def _needed(runs: _Open, split: Flags) -> Flags:
    return runs.again & (runs.until > runs.limit) & ~split[runs.last]


def _earliest(released: Supply, runs: _Open, needed: Flags) -> tuple[Spots, Flags]:
    """The earliest release that can end each hold, and whether there is one."""
    can, which = released.one_more(runs.beyond, runs.client)
    at = np.searchsorted(released.needing, runs.beyond[needed])
    which[needed] = released.from_spare[at]
    can[needed] = released.slack[at] >= 0
    return which, can
