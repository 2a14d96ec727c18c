"""From when on, and until when, a grant is promised: from the invocation of its acquire; or from
its turn, the release by the last holder, if that is later.

That the last holder kept the lock until it sent its release is certain only if the release was
confirmed and removed something. That it was granted the lock before the waiting client is certain
by time or by the tokens; or else if the waiting client would have been granted the lock first and
lost it again before its lease was over.
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

DRIFT = 100  # clocks may drift by less than one part in so many

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ClientEnd:
    """A client was killed at some moment between these; the processes that it had been by then."""

    processes: frozenset[int | str]
    since_ns: int
    by_ns: int  # NEVER if unknown


def promised_until(
    table: Table, terms: Terms, losses: Iterable[Event], ends: Iterable[ClientEnd] = ()
) -> Ints | None:
    """Until when each grant and renewal was promised; None if no promise has a known end.

    The service's clock may be a little faster than the history's. Without a lease, a client that
    learned of its loss (its session expired, its renewal was refused) had the promise until then.

    A killed client keeps no session alive, which may end as soon as the service notices. It was
    alive to record its last grant, but perhaps no longer.
    """
    lease = lease_ns(table, terms.ttl_ms)
    granted = (table.outcome == Outcome.OK) & ((table.f == Op.ACQUIRE) | (table.f == Op.RENEW))
    leased = granted & (lease > 0)
    since = promised_from(table, terms) if leased.any() else table.start
    until = np.where(leased, since + lease - lease // DRIFT, NEVER)
    endless = granted & ~leased
    refused = (table.f == Op.RENEW) & (table.outcome == Outcome.FAIL)
    lost = [(table.owner[row], table.key[row], table.end[row]) for row in np.flatnonzero(refused)]
    lost += [(table.symbols.number(e.process), table.symbols.number(e.key), e.time) for e in losses]
    for loss in lost if endless.any() else ():
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
    """The length of the lease that each row asked for; 0: there is none."""
    asked = np.where(table.ttl_ms > 0, table.ttl_ms, default_ttl_ms or 0)
    leases: Ints = asked.astype(np.int64) * NS_PER_MS
    return leases


def promised_from(table: Table, terms: Terms) -> Ints:
    """For each row the moment from which its lease is promised, if it was granted: for a session
    the invocation, since nothing shows that the client kept it alive while it waited."""
    return table.start if terms.session else turn_came(table, terms)


def turn_came(table: Table, terms: Terms, shared: Mask | None = None) -> Ints:
    """For each row the moment before which it cannot have been granted: its invocation, or later.
    With blind releases any client may have lost it any time. `shared`: the rows of shared holds."""
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
    """The confirmed releases and their acquires: by key, in the order of their times."""
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
    """The results, among those of these releases, that say that nothing was removed."""
    results = [number for number in np.unique(table.result[releases]).tolist() if number != NOTHING]
    values = ((number, table.symbols.value(number)) for number in results)
    return [n for n, value in values if isinstance(value, dict) and value.get("removed") == 0]


def _last_to_leave(table: Table, granted: Ints, left: Ints) -> tuple[Ints, Ints]:
    """Granted acquires during which a release of the same key was sent, and the last such release.
    Rows are in the order of their times, so they are compared instead of times."""
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
    tokens = (table.token[one] != NO_TOKEN) & (table.token[other] != NO_TOKEN)
    by_token = tokens & (table.token[one] < table.token[other])
    kept_ns = table.start[other] + lease - lease // DRIFT
    by_promise = ~tokens & (table.end[one] < kept_ns)
    certain: Mask = (table.end[one] < table.start[other]) | by_token | by_promise
    return certain
