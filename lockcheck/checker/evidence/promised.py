"""Until when a hold was promised, as it stood when a later client was let in.

A lease is promised from the invocation of its acquire, or from its turn, if that is later. A
session is promised for as long as it is kept alive, and so is a lease that its keeper renews: by
the renewals in the history; where it has none, unseen, as long as nothing can have prevented that.
From when on a session counts is known of a client that tells its validity; else it was last kept
alive at some moment since the heartbeat before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import inf

import numpy as np

from lockcheck.checker.evidence.order import Spans, by_key, certainly_earlier
from lockcheck.checker.evidence.promise import HEARTBEATS, turn_came
from lockcheck.checker.evidence.stalls import clipped, total_ns
from lockcheck.checker.logs.releases import as_proven
from lockcheck.history import Effect, F, FaultSpan, History, Hold, Operation, Stall
from lockcheck.history.clocks import slack_ns
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.model import validity_end_ns


@dataclass(frozen=True, slots=True)
class Promise:
    until_ns: int | None = None  # by what is known; None: until its release, or not known
    sure_ns: int | None = None  # it lasted until then, whatever clocks and heartbeats did
    latest_ns: int | None = None  # it may have lasted until then
    until_its_release: bool = False
    ended_by: FaultSpan | None = None  # the end of the server, with which the session ended


UNTIL_ITS_RELEASE = Promise(until_its_release=True)
NOT_KNOWN = Promise()


class Promises:
    """The promises of a history's holds; prepared once for all of them."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._terms = history.terms
        self._ttl_ms = history.terms.ttl_ms
        self._faults = history.faults
        self._clients = history.clients
        self._fault_starts = [fault.start_ns for fault in self._faults]  # in their order
        healed = (inf if f.healed_ns is None else f.healed_ns for f in self._faults)
        self._healed_by = list(accumulate(healed, max))
        self.stalls: defaultdict[str, list[Stall]] = defaultdict(list)  # by node
        for stall in history.stalls:
            self.stalls[stall.node].append(stall)

    def faults_at(self, start_ns: int, end_ns: int) -> list[FaultSpan]:
        """The faults that were active at some time of the interval."""
        first = bisect_left(self._healed_by, start_ns)
        near = self._faults[first : bisect_right(self._fault_starts, end_ns)]
        return [fault for fault in near if fault.touches(start_ns, end_ns)]

    # --- the promise -------------------------------------------------------------------------

    def of(self, earlier: Hold, later: Hold) -> Promise:
        """No renewal that was sent after the later grant binds the service. A program that ended
        may have given up whatever it held."""
        if self._program_ended(earlier.node, earlier.acquire.start_ns, later.start_ns):
            return NOT_KNOWN
        ended = self.server_end(earlier, later.start_ns)
        promise = self._without_an_end(earlier, later, ended)
        if ended is None:
            return promise
        gone_ns = ended.worked_from_ns
        if promise.until_ns is not None and promise.until_ns <= gone_ns:
            return promise
        return Promise(gone_ns, gone_ns, gone_ns, ended_by=ended)

    def _without_an_end(self, earlier: Hold, later: Hold, ended: FaultSpan | None) -> Promise:
        let_in_ns = later.start_ns if ended is None else ended.worked_from_ns
        if self._was_kept(earlier, let_in_ns):
            return UNTIL_ITS_RELEASE
        binding = [r for r in earlier.renewals if self._binds(r, later)]
        since_ns = self._since_ns(earlier)
        until_ns = earlier.promised_until_ns(self._ttl_ms, since_ns=since_ns, renewals=binding)
        if until_ns is None:
            return UNTIL_ITS_RELEASE
        lease_ns, asked_ns = self._lease_ns(earlier), earlier.acquire.start_ns
        slack = slack_ns(lease_ns, earlier.start_ns - asked_ns, self._terms)
        sure_ns, latest_ns = until_ns - slack, until_ns
        valid_ns = validity_end_ns(earlier.acquire, self._terms)
        if any(renewal.ok for renewal in binding):
            pass  # each is a promise of its own
        elif not self._terms.session:
            if self._waited(earlier, later):
                latest_ns = max(until_ns, valid_ns or earlier.start_ns + lease_ns)
        elif valid_ns is None:
            if self._terms.ends_with:  # of the connection nothing is known but its faults
                return NOT_KNOWN
            sure_ns -= lease_ns // HEARTBEATS
        return Promise(until_ns, sure_ns, latest_ns)

    def in_all_ns(self, hold: Hold) -> int | None:
        """The end of its last lease, regardless of later grants. None: it has no lease, or from
        when it counts is not known, since it would have been over before the grant."""
        until_ns = hold.promised_until_ns(self._ttl_ms, since_ns=self._since_ns(hold))
        return None if until_ns is not None and until_ns <= hold.start_ns else until_ns

    def _lease_ns(self, hold: Hold) -> int:
        return (hold.acquire.invoke.ttl_ms or self._ttl_ms or 0) * NS_PER_MS

    def _binds(self, renewal: Operation, later: Hold) -> bool:
        if self._terms.reentrant:  # the renewal may be of a later entry by its owner
            return renewal.end_ns is not None and renewal.end_ns <= later.start_ns
        return renewal.start_ns < later.start_ns

    # --- when it begins ----------------------------------------------------------------------

    def _since_ns(self, hold: Hold) -> int | None:
        """When its turn came, if it waited; of a session, if its client can have kept it alive."""
        turn_ns = self._turns.get(id(hold.acquire))
        if not self._terms.session:
            return turn_ns
        kept_ns, waited = self._last_kept_ns(hold), (hold.acquire.start_ns, hold.start_ns)
        if not self.undisturbed(hold.node, *waited):
            return None
        if self._servers_were_mended(*waited):  # so it was kept alive no later than its client says
            return kept_ns
        known = [ns for ns in (turn_ns, kept_ns) if ns is not None]
        return max(known, default=None)

    def _last_kept_ns(self, hold: Hold) -> int | None:
        """When its client last kept its session alive before the grant: follows from the validity
        that the client believed in, unless it was stopped meanwhile."""
        until_ns = validity_end_ns(hold.acquire, self._terms)
        ttl_ms = hold.acquire.invoke.ttl_ms or self._ttl_ms
        return until_ns - ttl_ms * NS_PER_MS if until_ns is not None and ttl_ms else None

    @cached_property
    def _turns(self) -> dict[int, int]:
        operations = self._history.operations
        try:
            table = as_proven(self._history.table, self._terms)
        except OverflowError:  # numbers beyond 64 bits, which no reader accepts
            return {}
        since = turn_came(table, self._terms, self._history.turns)
        waited = np.flatnonzero(since > table.start).tolist()
        return {id(operations[row]): int(since[row]) for row in waited}

    def _waited(self, hold: Hold, later: Hold) -> bool:
        """Whether the moment of its grant is not known: a third client certainly held the lock
        while this one asked for it, or may have, in a log that may lack it."""
        if self._terms.partial:
            return True
        held = self._held.get(hold.key)
        others = held.touching(hold.acquire.start_ns, hold.start_ns) if held else ()
        return any(
            other is not later
            and other.process != hold.process
            and not (other.shared and hold.shared)
            and not certainly_earlier(hold, other)
            for other in others
        )

    @cached_property
    def _held(self) -> dict[str, Spans[Hold]]:
        holds = by_key(self._history.holds)
        return {key: Spans((h.start_ns, h.end_ns, h) for h in its) for key, its in holds.items()}

    # --- what keeps a session up, and what ends it -------------------------------------------

    def _was_kept(self, hold: Hold, until_ns: int) -> bool:
        """Whether it must have been kept alive, although the history has no renewals."""
        kept_alive = self._terms.session or self._terms.renews
        if not kept_alive or self._tells_of_renewals or until_ns >= hold.end_ns:
            return False
        since = hold.acquire.start_ns, until_ns
        return self.undisturbed(hold.node, *since) and not self._servers_were_mended(*since)

    def kept(self, hold: Hold, later: Hold) -> bool:
        """Of a session that is promised until its release: whether it was alive for certain."""
        return self._was_kept(hold, later.start_ns)

    def server_end(self, hold: Hold, until_ns: int) -> FaultSpan | None:
        """The first end of a server since it was asked for, where a session ends with its
        connection or server."""
        if not self._terms.ends_with:
            return None
        nodes, since_ns = set(self._terms.lock_nodes), hold.acquire.start_ns
        ends = (
            fault
            for fault in self.faults_at(since_ns, until_ns)
            if fault.effect is Effect.ENDS and fault.proven_ns is not None
        )
        # It may have been asked while they were ending, by those that were left.
        between = (f for f in ends if nodes & set(f.nodes) and (f.worked_by_ns or 0) >= since_ns)
        return min(between, key=lambda fault: fault.worked_from_ns, default=None)

    def _servers_were_mended(self, start_ns: int, end_ns: int) -> bool:
        """Whether a server may have been restarted to heal its clock, and missed a heartbeat."""
        mends = (
            fault.healing_overlap_ns(start_ns, end_ns)
            for fault in self._faults
            if fault.effect is Effect.SKEWS and not self._clients.issuperset(fault.nodes)
        )
        return max(mends, default=0) * HEARTBEATS > (self._ttl_ms or 0) * NS_PER_MS

    @cached_property
    def _tells_of_renewals(self) -> bool:
        return any(operation.f == F.RENEW for operation in self._history.operations)

    def undisturbed(self, node: str, start_ns: int, end_ns: int) -> bool:
        """Whether nothing can have suppressed its heartbeats. Stalls may, if none are recorded."""
        if not self._terms.backend:
            return False
        stalled_ns = total_ns(clipped(self.stalls[node], start_ns, end_ns))
        if stalled_ns * HEARTBEATS > (self._ttl_ms or 0) * NS_PER_MS:
            return False
        return not self.disturbing(node, start_ns, end_ns)

    def _program_ended(self, node: str, start_ns: int, end_ns: int) -> bool:
        """Whether the program that the client works through may have ended in that time."""
        return any(
            event.node == node and event.time >= start_ns and (event.since or 0) <= end_ns
            for event in self._history.programs_ended
        )

    def disturbing(self, node: str, start_ns: int, end_ns: int) -> list[FaultSpan]:
        """The faults that may have suppressed the node's heartbeats. A cut has two sides, of which
        the history may name one; a wrong clock suppresses none, nor does a fault of other
        clients."""
        return [f for f in self.faults_at(start_ns, end_ns) if self._disturbs(f, node)]

    def _disturbs(self, fault: FaultSpan, node: str) -> bool:
        if fault.effect is Effect.SKEWS:
            return False
        if fault.effect is None or fault.effect is Effect.CUTS or not fault.nodes:
            return True
        return node in fault.nodes or not self._clients.issuperset(fault.nodes)


def longest(faults: Iterable[FaultSpan], start_ns: int, end_ns: int) -> FaultSpan | None:
    """The fault that was active for longest in that time."""

    def touched_ns(fault: FaultSpan) -> int:
        healed_ns = end_ns if fault.healed_ns is None else min(fault.healed_ns, end_ns)
        return healed_ns - max(fault.start_ns, start_ns)

    return max(faults, key=touched_ns, default=None)
