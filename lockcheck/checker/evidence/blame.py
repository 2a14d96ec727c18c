"""Why the later holder was let in while the earlier one still believed.

The promise of a lease runs at least until `acquire`'s invocation + TTL, or that of the last renewal
that was granted. Let in before that: the service broke its promise. After: the holder outlived its
lease. Nobody is accused where something else explains it: a blind release by a third, a jump of
the host's clock, a stall of the machine.

An acquire that waited is promised from its turn (see `promise`). A renewal that was under way when
the other one was let in, and was granted, binds too: either it was granted before, or it would have
had to be refused.

A session lasts for as long as its client keeps it alive. Where a history tells of renewals, they
are all that keeps it alive. Where it tells of none, the client did it unseen: the service is only
accused after the timeout if nothing can have kept the client from it, neither a fault nor a stall,
and if it notes its stalls, so that we know.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate
from math import inf

import numpy as np

from lockcheck.checker.evidence.order import Spans, concurrent
from lockcheck.checker.evidence.promise import turn_came
from lockcheck.checker.evidence.releases import BlindRelease
from lockcheck.checker.evidence.stalls import clipped, host_stepped_ns, total_ns
from lockcheck.checker.finding import Blame, Culprit
from lockcheck.history import Effect, Ending, F, FaultSpan, History, Hold, Operation, Stall
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.model import validity_end_ns

# A client is heard of this often within its session's timeout: a shorter stall cannot end it.
HEARTBEATS = 3


class Attribution:
    """A history, made ready to answer the same question for many pairs of holds."""

    def __init__(self, history: History, releases: dict[str, list[BlindRelease]]) -> None:
        self._history = history
        self._terms = history.terms
        self._ttl_ms = history.terms.ttl_ms
        self._faults = history.faults
        self._clients = history.clients
        self._fault_starts = [fault.start_ns for fault in self._faults]  # in their order
        healed = (inf if f.healed_ns is None else f.healed_ns for f in self._faults)
        self._healed_by = list(accumulate(healed, max))
        self._releases = {
            key: Spans((r.operation.start_ns, r.answered_ns, r) for r in suspects)
            for key, suspects in releases.items()
        }
        self._stalls: defaultdict[str, list[Stall]] = defaultdict(list)
        for stall in history.stalls:
            self._stalls[stall.node].append(stall)

    def in_order(self, one: Hold, other: Hold) -> tuple[Hold, Hold]:
        """The earlier and the later of two holds.

        While both acquires were under way, the answers may have come in another order than the
        grants: a client that was paused before it read its answer was granted long ago. Tokens
        tell. Where there are none, that order counts in which the service kept its promise.
        """
        first, second = sorted((one, other), key=lambda hold: hold.start_ns)
        if not concurrent(first, second):
            return first, second
        if first.token is not None and second.token is not None and first.token != second.token:
            return (first, second) if first.token < second.token else (second, first)
        if self._let_in_early(first, second) and not self._let_in_early(second, first):
            return second, first
        return first, second

    def blame(self, earlier: Hold, later: Hold, write: Operation | None = None) -> Blame:
        """`write`: what the earlier holder did too late; None where it only held too long."""
        if write is not None and _had_let_go(earlier, later, write):
            by_ns = max(0, write.start_ns - earlier.end_ns)
            return Blame(Culprit.CLIENT, by_ns, self.promised_until_ns(earlier, later))
        if self._let_in_early(earlier, later):
            return self._service(earlier, later, write)
        return self._holder(earlier, later, write)

    def promised_until_ns(self, earlier: Hold, later: Hold) -> int | None:
        """As it stood when `later` was let in: no renewal that was asked for after that could bind
        the service. None: until its release, where there is no lease, or a session was kept."""
        if self._was_kept(earlier, later):
            return None
        binding = [r for r in earlier.renewals if self._binds(r, later)]
        since_ns = self._since_ns(earlier)
        return earlier.promised_until_ns(self._ttl_ms, since_ns=since_ns, renewals=binding)

    def promised_in_all_ns(self, hold: Hold) -> int | None:
        """Whoever came later: until when its last lease ran. None: there was none, or nobody saw
        what kept its session alive until it was granted the lock."""
        until_ns = hold.promised_until_ns(self._ttl_ms, since_ns=self._since_ns(hold))
        unseen = self._terms.session and until_ns is not None and until_ns <= hold.start_ns
        return None if unseen else until_ns

    def _binds(self, renewal: Operation, later: Hold) -> bool:
        if self._terms.reentrant:  # its owner may have entered again, and renewed that
            return renewal.end_ns is not None and renewal.end_ns <= later.start_ns
        return renewal.start_ns < later.start_ns

    def _let_in_early(self, earlier: Hold, later: Hold) -> bool:
        promised_ns = self.promised_until_ns(earlier, later)
        if promised_ns is not None:
            return later.start_ns < promised_ns
        if self._terms.session:
            return self._was_kept(earlier, later)
        # Without a lease the lock is promised until its release; a client that was never seen
        # again has lost its session, and its lock with it.
        return earlier.end_ns > later.start_ns or earlier.ending is Ending.LOST

    # --- when a promise begins, and what keeps it up ------------------------------------------

    def _since_ns(self, hold: Hold) -> int | None:
        """When its turn came, where it had to wait for that. Of a session only if its client can
        have kept it alive while it waited."""
        turn_ns = self._turns.get(id(hold.acquire))
        if not self._terms.session:
            return turn_ns
        kept_ns, waited = self._last_kept_ns(hold), (hold.acquire.start_ns, hold.start_ns)
        if not self._undisturbed(hold.node, *waited):
            return None
        if self._servers_were_mended(*waited):  # so it was kept when its client says, at best
            return kept_ns
        known = [ns for ns in (turn_ns, kept_ns) if ns is not None]
        return max(known, default=None)

    def _last_kept_ns(self, hold: Hold) -> int | None:
        """When its client last kept its session alive before it was granted the lock: that follows
        from how long it believed the grant to be valid, if it did not stand still meanwhile."""
        until_ns = validity_end_ns(hold.acquire, self._terms)
        ttl_ms = hold.acquire.invoke.ttl_ms or self._ttl_ms
        return until_ns - ttl_ms * NS_PER_MS if until_ns is not None and ttl_ms else None

    @cached_property
    def _turns(self) -> dict[int, int]:
        operations = self._history.operations
        try:
            table = self._history.table
        except OverflowError:  # no column holds such numbers, and no reader lets them in
            return {}
        shared = np.fromiter((o.invoke.shared for o in operations), bool, len(operations))
        since = turn_came(table, self._terms, shared)
        waited = np.flatnonzero(since > table.start).tolist()
        return {id(operations[row]): int(since[row]) for row in waited}

    def _was_kept(self, earlier: Hold, later: Hold) -> bool:
        """A session that must have been alive, although nobody saw what kept it so."""
        if not self._terms.session or self._tells_of_renewals or later.start_ns >= earlier.end_ns:
            return False
        since = earlier.acquire.start_ns, later.start_ns
        return self._undisturbed(earlier.node, *since) and not self._servers_were_mended(*since)

    def _servers_were_mended(self, start_ns: int, end_ns: int) -> bool:
        """To make the clock of a server right again it may have been started anew: long enough for
        a heartbeat to be missed."""
        mends = (
            fault.healing_overlap_ns(start_ns, end_ns)
            for fault in self._faults
            if fault.effect is Effect.SKEWS and not self._clients.issuperset(fault.nodes)
        )
        return max(mends, default=0) * HEARTBEATS > (self._ttl_ms or 0) * NS_PER_MS

    @cached_property
    def _tells_of_renewals(self) -> bool:
        return any(operation.f == F.RENEW for operation in self._history.operations)

    def _undisturbed(self, node: str, start_ns: int, end_ns: int) -> bool:
        """Nothing can have kept it from being heard of; a client that does not note its stalls can
        have had any."""
        if not self._terms.backend:
            return False
        stalled_ns = total_ns(clipped(self._stalls[node], start_ns, end_ns))
        if stalled_ns * HEARTBEATS > (self._ttl_ms or 0) * NS_PER_MS:
            return False
        return not any(self._disturbs(f, node) for f in self._faults_at(start_ns, end_ns))

    def _faults_at(self, start_ns: int, end_ns: int) -> list[FaultSpan]:
        """All that touch that time; of a long run's faults, few others are looked at."""
        first = bisect_left(self._healed_by, start_ns)
        near = self._faults[first : bisect_right(self._fault_starts, end_ns)]
        return [fault for fault in near if fault.touches(start_ns, end_ns)]

    def _proven_at(self, start_ns: int, end_ns: int) -> list[FaultSpan]:
        return [f for f in self._faults_at(start_ns, end_ns) if f.proven_ns is not None]

    def _disturbs(self, fault: FaultSpan, node: str) -> bool:
        """A cut has two sides, of which one may be told; what befalls only other clients is no
        matter. A clock that is wrong keeps nobody from speaking."""
        if fault.effect is Effect.SKEWS:
            return False
        if fault.effect is None or fault.effect is Effect.CUTS or not fault.nodes:
            return True
        return node in fault.nodes or not self._clients.issuperset(fault.nodes)

    # --- the service, unless something took the lock away -----------------------------------

    def _service(self, earlier: Hold, later: Hold, write: Operation | None) -> Blame:
        promised_ns = self.promised_until_ns(earlier, later)
        acted_ns = earlier.end_ns if write is None else write.start_ns
        until_ns = acted_ns if promised_ns is None else promised_ns
        by_ns = max(0, until_ns - later.start_ns)
        took = self._taken_by(earlier, later)
        if took is not None:
            return Blame(
                Culprit.CLIENT, by_ns, promised_ns, release=took.operation, released_by=took.by
            )
        start_ns, let_in_ns = earlier.acquire.start_ns, later.start_ns
        stepped_ns = host_stepped_ns(self._history.clock_steps, self._faults, start_ns, let_in_ns)
        if promised_ns is not None and by_ns <= stepped_ns:  # else the step explains a part only
            return Blame(Culprit.MACHINE, by_ns, promised_ns)
        fault = self.fault_anywhere(start_ns, let_in_ns, (earlier.start_ns, let_in_ns))
        return Blame(Culprit.SERVICE, by_ns, promised_ns, fault)

    def _taken_by(self, earlier: Hold, later: Hold) -> BlindRelease | None:
        """A release that took the lock of `earlier` away: the last that surely did, or may have."""
        releases = self._releases.get(earlier.key)
        if releases is None:
            return None
        under_way = releases.touching(earlier.acquire.start_ns, later.start_ns)
        suspects = [release for release in under_way if release.may_be_foreign_to(earlier)]
        proven = (release for release in suspects if release.was_foreign_to(earlier))
        return next(proven, suspects[0] if suspects else None)

    def fault_anywhere(
        self, start_ns: int, end_ns: int, later_ns: Iterable[int] = ()
    ) -> FaultSpan | None:
        """Of the servers' faults, or else of any, the one that lasted longest in that time; one
        that only slows them down where there is no other. Rather than one that was healed before
        each of the later moments, one that was not."""
        active = self._proven_at(start_ns, end_ns)
        told = [fault for fault in active if not self._clients.issuperset(fault.nodes or [""])]
        told = told or active
        likely = [fault for fault in told if fault.effect is not Effect.SLOWS] or told
        for moment_ns in later_ns:
            likely = [fault for fault in likely if fault.touches(moment_ns, end_ns)] or likely
        return _longest(likely, start_ns, end_ns)

    # --- the holder, unless the machine stopped it ------------------------------------------

    def _holder(self, earlier: Hold, later: Hold, write: Operation | None) -> Blame:
        promised_ns = self.promised_until_ns(earlier, later)
        acted_ns = earlier.end_ns if write is None else write.start_ns
        by_ns = 0 if promised_ns is None else max(0, acted_ns - promised_ns)
        done_ns = earlier.end_ns if write is None else _done_ns(write)
        kept_ns = promised_ns
        if self._terms.session:  # without a stall it would have been kept until then, at least
            kept_ns = max(later.start_ns, promised_ns or later.start_ns)
        stalls = self._excusing_stalls(earlier, kept_ns, done_ns)
        if stalls:
            return Blame(Culprit.MACHINE, by_ns, promised_ns, stalls=stalls)
        moment_ns = later.start_ns if write is None else done_ns
        return Blame(Culprit.HOLDER, by_ns, promised_ns, self._fault_on(earlier, moment_ns))

    def _fault_on(self, hold: Hold, until_ns: int) -> FaultSpan | None:
        start_ns = hold.acquire.start_ns
        active = self._proven_at(start_ns, until_ns)
        struck = [fault for fault in active if hold.node in fault.nodes]
        mine = struck or [fault for fault in active if fault.concerns(hold.node)]
        return _longest(mine, start_ns, until_ns)

    def _excusing_stalls(
        self, hold: Hold, promised_ns: int | None, done_ns: int
    ) -> tuple[Stall, ...]:
        """The machine's stalls without which it would all have been done within the promise.

        None where a fault of ours kept the node from running: then the stall is that fault.
        """
        start_ns = hold.acquire.start_ns
        at_the_time = self._faults_at(start_ns, done_ns)
        struck = any(f.may_have_stopped(hold.node, start_ns, done_ns) for f in at_the_time)
        if promised_ns is None or struck or done_ns <= promised_ns:
            return ()
        stalls = clipped(self._stalls[hold.node], start_ns, done_ns)
        return stalls if done_ns - total_ns(stalls) <= promised_ns else ()


def _done_ns(write: Operation) -> int:
    """The client may have stood still after it wrote down what it would send, and then sent it."""
    return write.start_ns if write.answer is None else write.answer.time


def _had_let_go(earlier: Hold, later: Hold, write: Operation) -> bool:
    """It wrote after it had released the lock or been told that it lost it; or it released in
    time, so that what went wrong afterwards is not the lock's."""
    if earlier.ending not in (Ending.RELEASED, Ending.LOST):
        return False
    released_in_time = earlier.ending is Ending.RELEASED and earlier.end_ns <= later.start_ns
    return write.start_ns > earlier.end_ns or released_in_time


def _longest(faults: list[FaultSpan], start_ns: int, end_ns: int) -> FaultSpan | None:
    def touched_ns(fault: FaultSpan) -> int:
        healed_ns = end_ns if fault.healed_ns is None else min(fault.healed_ns, end_ns)
        return healed_ns - max(fault.start_ns, start_ns)

    return max(faults, key=touched_ns, default=None)
