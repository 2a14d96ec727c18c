"""From when on, and until when, a grant is promised: from the invocation of its acquire; or from
its turn, if that is later: its client recorded it, or it is the release by the last holder.

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
from lockcheck.history.clocks import DRIFT_OF_ONE, DRIFT_OF_TWO, LONGEST_REQUEST
from lockcheck.history.event import NS_PER_MS, Event
from lockcheck.history.ordering import order_by
from lockcheck.history.table import NEVER, NO_TOKEN, NOTHING, Ints, Op, Outcome, Table

# Heartbeats within a session's timeout: a stall shorter than one interval cannot end the session.
HEARTBEATS = 3

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ClientEnd:
    """At some moment between these the sessions of these processes may have ended: their client
    was killed, or the server with which they end."""

    processes: frozenset[int | str]
    since_ns: int
    by_ns: int  # NEVER if unknown
    by_itself: bool = False  # its program ended, and may have given up whatever it held


def promised_until(
    table: Table,
    terms: Terms,
    losses: Iterable[Event],
    ends: Iterable[ClientEnd] = (),
    undated: Mask | None = None,
    *,
    turns: Iterable[Event] = (),
) -> Ints | None:
    """Until when each grant and renewal was promised; None if no promise has a known end.

    The service's clock may be a little faster than the history's. A client that learned of its loss
    (its session expired, its connection ended) had the promise until then; one whose renewal was
    refused, too, if there was no lease: within a lease the refusal breaks the promise. `undated`:
    the grants of sessions whose last heartbeat before the grant is not known.

    A killed client keeps no session alive, which may end as soon as the service notices. It was
    alive to record its last grant, but perhaps no longer.
    """
    lease = lease_ns(table, terms.ttl_ms)
    kept = lease - _slacks_ns(lease, table.end - table.start, terms)
    granted = (table.outcome == Outcome.OK) & ((table.f == Op.ACQUIRE) | (table.f == Op.RENEW))
    leased = granted & (lease > 0)
    since = promised_from(table, terms, turns) if leased.any() else table.start
    until = np.where(leased, since + kept, NEVER)
    if undated is not None:
        until = np.where(leased & undated, until - lease // HEARTBEATS, until)
    granting, refused = _ByClient(table, granted), _ByClient(table, _refused_renewals(table))
    for row in refused.rows.tolist() if (granted & ~leased).any() else ():
        held = granting.since_last_grant(table.owner[row], table.key[row], table.end[row])
        until[held[until[held] == NEVER]] = table.end[row]
    for loss in losses:
        whose = table.symbols.number(loss.process), table.symbols.number(loss.key)
        held = granting.since_last_grant(*whose, loss.time)
        if len(held) and not (refused.before(*whose, loss.time) > held[0]).any():
            until[held] = np.minimum(until[held], loss.time)
    for end in (end for end in ends if terms.session or end.by_itself):
        theirs = np.isin(table.owner, [table.symbols.number(process) for process in end.processes])
        rows = np.flatnonzero(granted & theirs & (table.start <= end.by_ns))
        alive = np.clip(table.end[rows], end.since_ns, end.by_ns)
        until[rows] = np.minimum(until[rows], alive)
    return until if (until < NEVER).any() else None


def _refused_renewals(table: Table) -> Mask:
    refused: Mask = (table.f == Op.RENEW) & (table.outcome == Outcome.FAIL)
    return refused


class _ByClient:
    """Some rows: of each client and key those that were answered by a moment."""

    def __init__(self, table: Table, which: Mask) -> None:
        rows = np.flatnonzero(which)
        self._width = int(table.owner.max(initial=0)) + 1
        client = (table.key[rows].astype(np.int64) + 1) * self._width + table.owner[rows]
        order = order_by(client, table.end[rows])
        self.rows, self._clients = rows[order], client[order]
        self._ends = table.end[self.rows]
        acquires = table.f[self.rows] == Op.ACQUIRE
        at = np.where(acquires, np.arange(len(rows)), -1)
        self._last_acquire = np.maximum.accumulate(at) if len(rows) else at

    def _places(self, owner: int, key: int, time_ns: int) -> tuple[int, int]:
        client = (int(key) + 1) * self._width + int(owner)
        first, past = (int(np.searchsorted(self._clients, client, s)) for s in ("left", "right"))
        return first, first + int(np.searchsorted(self._ends[first:past], time_ns, "right"))

    def before(self, owner: int, key: int, time_ns: int) -> Ints:
        return self.rows[slice(*self._places(owner, key, time_ns))]

    def next_after(self, owner: int, key: int, time_ns: int) -> int | None:
        """The row that was answered next."""
        _, past = self._places(owner, key, time_ns)
        client = (int(key) + 1) * self._width + int(owner)
        same = past < len(self.rows) and self._clients[past] == client
        return int(self.rows[past]) if same else None

    def since_last_grant(self, owner: int, key: int, time_ns: int) -> Ints:
        """The last acquire before that moment, and what came after it."""
        first, past = self._places(owner, key, time_ns)
        last = int(self._last_acquire[past - 1]) if past > first else -1
        return self.rows[last if last >= first else past : past]


def _slacks_ns(lease: Ints, request: Ints, terms: Terms) -> Ints:
    """As `slack_ns`, of many."""
    if terms.backend:
        return lease // DRIFT_OF_ONE
    slacks: Ints = lease // DRIFT_OF_TWO + np.minimum(request, lease // LONGEST_REQUEST)
    return slacks


def lease_ns(table: Table, default_ttl_ms: int | None) -> Ints:
    """The length of the lease that each row asked for; 0: there is none. A renewal that names none
    asks for what was granted."""
    asked = np.where(table.ttl_ms > 0, table.ttl_ms, default_ttl_ms or 0)
    silent = (table.f == Op.RENEW) & (asked == 0)
    if silent.any() and (asked > 0).any():
        rows = np.flatnonzero(((table.f == Op.ACQUIRE) & (table.outcome == Outcome.OK)) | silent)
        rows = rows[order_by(table.key[rows], table.owner[rows])]
        last = np.maximum.accumulate(np.where(silent[rows], -1, np.arange(len(rows))))
        granted = rows[last]
        own = (last >= 0) & (table.owner[granted] == table.owner[rows])
        own &= table.key[granted] == table.key[rows]
        renewed = silent[rows] & own
        asked[rows[renewed]] = asked[granted[renewed]]
    leases: Ints = asked.astype(np.int64) * NS_PER_MS
    return leases


def promised_from(table: Table, terms: Terms, turns: Iterable[Event] = ()) -> Ints:
    """For each row the moment from which its lease is promised, if it was granted: for a session
    the invocation, since nothing shows that the client kept it alive while it waited."""
    return table.start if terms.session else turn_came(table, terms, turns)


def turn_came(table: Table, terms: Terms, turns: Iterable[Event] = ()) -> Ints:
    """For each row the moment before which it cannot have been granted: its invocation, or later.
    `turns`: what clients recorded of it."""
    since, turns = _left_by_the_last(table, terms), tuple(turns)
    if not turns:
        return since
    since = since.copy()
    granted = _ByClient(table, (table.f == Op.ACQUIRE) & (table.outcome == Outcome.OK))
    for turn in turns:
        whose = table.symbols.number(turn.process), table.symbols.number(turn.key)
        row = granted.next_after(*whose, turn.time)
        if row is not None and table.start[row] <= turn.time:
            since[row] = max(since[row], turn.time)
    return since


def _left_by_the_last(table: Table, terms: Terms) -> Ints:
    """The invocation, or the release by the last holder, if that is later. With blind releases any
    client may have lost it any time."""
    if terms.permits > 1 or terms.released_by_anyone:
        return table.start
    granted = np.flatnonzero((table.f == Op.ACQUIRE) & (table.outcome == Outcome.OK))
    left, acquired = _turns(table)
    if len(granted) == 0 or len(left) == 0 or table.blind.any():
        return table.start
    granted, before = _last_to_leave(table, granted, left)
    before, of = left[before], acquired[before]
    lease = lease_ns(table, terms.ttl_ms)[granted]
    lease -= _slacks_ns(lease, table.end[granted] - table.start[granted], terms)
    certain = _certainly_before(table, of, granted, lease)
    certain &= table.process[of] != table.process[granted]
    certain &= ~(table.shared[of] & table.shared[granted])
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
    """`lease`: how long each of the others would have been promised the lock, at least."""
    tokens = (table.token[one] != NO_TOKEN) & (table.token[other] != NO_TOKEN)
    by_token = tokens & (table.token[one] < table.token[other])
    by_promise = ~tokens & (table.end[one] < table.start[other] + lease)
    certain: Mask = (table.end[one] < table.start[other]) | by_token | by_promise
    return certain
