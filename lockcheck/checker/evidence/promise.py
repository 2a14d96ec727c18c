"""From when on, and until when, a grant is promised.

A lease runs from the invocation of the acquire: the service may have begun to count then. But an
acquire can have waited, in a queue, for long, and was granted when its turn came. A grant cannot
lie before the last holder let go: so its promise runs from the later of both moments.

That the last holder let go no sooner than it asked for its release is only certain where this was
confirmed, and said that something was released. That it was granted the lock before whoever waited
is certain by time, or by the tokens; and where neither tells, if the one who waited would otherwise
have been granted the lock first and lost it again, for the other one, before its lease was over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lockcheck.history import Terms
from lockcheck.history.event import NS_PER_MS, Event
from lockcheck.history.ordering import order_by
from lockcheck.history.table import NEVER, NO_TOKEN, NOTHING, Ints, Op, Outcome, Table

DRIFT = 100  # clocks that drift by less than one part in so many are right enough

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ClientEnd:
    """A client was ended, at some moment between these: all that it had been by then."""

    processes: frozenset[int | str]
    since_ns: int
    by_ns: int  # NEVER where nobody knows


def promised_until(
    table: Table, terms: Terms, losses: Iterable[Event], ends: Iterable[ClientEnd] = ()
) -> Ints | None:
    """Until when each grant and renewal was promised; None where nothing says so.

    By the clock of the service, which may be a little faster than the one that we know. Without a
    lease, a client that is told that it lost the lock (its session expired, its renewal was
    refused) had been promised it up to that moment.

    A client that was ended keeps no session alive: it may be over as soon as that is noticed. What
    it was granted while it was about to be ended it was alive to write down, and no longer perhaps.
    """
    lease = lease_ns(table, terms.ttl_ms)
    granted = (table.outcome == Outcome.OK) & ((table.f == Op.ACQUIRE) | (table.f == Op.RENEW))
    leased = granted & (lease > 0)
    since = promised_from(table, terms) if leased.any() else table.start
    until = np.where(leased, since + lease - lease // DRIFT, NEVER)
    endless = granted & ~leased
    refused = (table.f == Op.RENEW) & (table.outcome == Outcome.FAIL)
    told = [(table.owner[row], table.key[row], table.end[row]) for row in np.flatnonzero(refused)]
    told += [(table.symbols.number(e.process), table.symbols.number(e.key), e.time) for e in losses]
    for loss in told if endless.any() else ():
        rows = _granted_before(table, *loss)
        until[rows[until[rows] == NEVER]] = loss[2]
    for end in ends if terms.session else ():
        theirs = np.isin(table.owner, [table.symbols.number(process) for process in end.processes])
        rows = np.flatnonzero(granted & theirs & (table.start <= end.by_ns))
        alive = np.clip(table.end[rows], end.since_ns, end.by_ns)
        until[rows] = np.minimum(until[rows], alive)
    return until if (until < NEVER).any() else None


def _granted_before(table: Table, owner: int, key: int, time_ns: int) -> Ints:
    """The last grant before that moment, and the renewals since."""
    rows = np.flatnonzero(
        (table.owner == owner)
        & (table.key == key)
        & np.isin(table.f, (Op.ACQUIRE, Op.RENEW))
        & (table.outcome == Outcome.OK)
        & (table.end <= time_ns)
    )
    grants = np.flatnonzero(table.f[rows] == Op.ACQUIRE)
    return rows[grants[-1] :] if len(grants) else rows[:0]


def lease_ns(table: Table, default_ttl_ms: int | None) -> Ints:
    """How long what each row asked for lasts; 0: there is no lease."""
    asked = np.where(table.ttl_ms > 0, table.ttl_ms, default_ttl_ms or 0)
    leases: Ints = asked.astype(np.int64) * NS_PER_MS
    return leases


def promised_from(table: Table, terms: Terms) -> Ints:
    """For each row the moment from which on its lease is promised, if it was granted.

    Of a session that is the invocation: it is not the grant that lasts for a while, but what its
    client keeps alive, and while it waited nobody saw it do so.
    """
    return table.start if terms.session else turn_came(table, terms)


def turn_came(table: Table, terms: Terms, shared: Mask | None = None) -> Ints:
    """For each row the moment before which it cannot have been granted: its invocation, or later.

    `shared`: the rows that let in others who share. Where releases do not look whose lock they
    remove, anybody can have lost it at any time, and nothing is known but the invocation.
    """
    if terms.permits > 1 or terms.released_by_anyone:
        return table.start
    granted = np.flatnonzero((table.f == Op.ACQUIRE) & (table.outcome == Outcome.OK))
    left, acquired = _turns(table)
    if len(granted) == 0 or len(left) == 0 or table.blind.any():
        return table.start
    granted, before = _last_to_leave(table, granted, left)
    before, of = left[before], acquired[before]
    certain = _certainly_before(table, of, granted, lease_ns(table, terms.ttl_ms)[granted])
    certain &= table.process[of] != table.process[granted]
    if shared is not None:
        certain &= ~(shared[of] & shared[granted])
    since: Ints = table.start.copy()
    since[granted[certain]] = table.start[before[certain]]
    return since


def _turns(table: Table) -> tuple[Ints, Ints]:
    """Releases that were confirmed, and what they gave up: by key, in the order of their times."""
    locking = np.flatnonzero((table.f == Op.ACQUIRE) | (table.f == Op.RELEASE))
    rows = locking[order_by(table.key[locking], table.process[locking])]
    one, other = rows[:-1], rows[1:]
    ok = table.outcome == Outcome.OK
    turns = ok[one] & ok[other] & (table.f[one] == Op.ACQUIRE) & (table.f[other] == Op.RELEASE)
    turns &= (table.key[one] == table.key[other]) & (table.process[one] == table.process[other])
    acquired, left = one[turns], other[turns]
    certain = ~np.isin(table.result[left], _removing_nothing(table, left))
    acquired, left = acquired[certain], left[certain]
    order = np.lexsort((left, table.key[left]))
    return left[order], acquired[order]


def _removing_nothing(table: Table, releases: Ints) -> list[int]:
    """The results of these releases that say so."""
    results = [number for number in np.unique(table.result[releases]).tolist() if number != NOTHING]
    values = ((number, table.symbols.value(number)) for number in results)
    return [n for n, value in values if isinstance(value, dict) and value.get("removed") == 0]


def _last_to_leave(table: Table, granted: Ints, left: Ints) -> tuple[Ints, Ints]:
    """Of each key the last release that was asked for while an acquire was under way, where there
    was one. Rows are in the order of their times, so a row does for a time."""
    width = len(table) + 1
    by_then = np.searchsorted(table.start, table.end[granted], "right")
    words = (table.key[left].astype(np.int64) + 1) * width + left
    key = (table.key[granted].astype(np.int64) + 1) * width
    last = np.searchsorted(words, key + by_then, "left") - 1
    there = last >= 0
    there &= table.key[left[last]] == table.key[granted]
    there &= table.start[left[last]] > table.start[granted]
    return granted[there], last[there]


def _certainly_before(table: Table, one: Ints, other: Ints, lease: Ints) -> Mask:
    told = (table.token[one] != NO_TOKEN) & (table.token[other] != NO_TOKEN)
    by_token = told & (table.token[one] < table.token[other])
    kept_ns = table.start[other] + lease - lease // DRIFT
    by_promise = ~told & (table.end[one] < kept_ns)
    certain: Mask = (table.end[one] < table.start[other]) | by_token | by_promise
    return certain
