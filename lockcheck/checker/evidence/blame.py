"""Why the later holder was let in while the earlier one still believed; docs/design/verdicts.md
has the rules.

Neither service nor holder is accused if something else explains the overlap: a blind release by a
third client, a jump of the host's clock, a stall of the machine. Of a session without renewals in
the history the service is accused after the timeout only if its client records its stalls, and
neither those nor a fault can have kept it from renewing.
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

# Heartbeats within a session's timeout: a stall shorter than one interval cannot end the session.
HEARTBEATS = 3


class Attribution:
    """Decides who is to blame for a pair of holds; prepared once for all pairs of a history."""

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

        If both acquires were under way at once, the answers may be in another order than the
        grants: a client that was paused before it read its answer was granted long before. Then the
        tokens decide; without tokens, the order in which the service kept its promise.
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
        """`write`: the earlier holder's late write; None if it only held too long."""
        if write is not None and _had_let_go(earlier, later, write):
            by_ns = max(0, write.start_ns - earlier.end_ns)
            return Blame(Culprit.CLIENT, by_ns, self.promised_until_ns(earlier, later))
        if self._let_in_early(earlier, later):
            return self._service(earlier, later, write)
        return self._holder(earlier, later, write)

    def promised_until_ns(self, earlier: Hold, later: Hold) -> int | None:
        """The end of the promise as it stood at `later`'s grant: no renewal that was sent after
        that binds the service. None: promised until its release (no lease, or a session kept
        alive)."""
        if self._was_kept(earlier, later):
            return None
        binding = [r for r in earlier.renewals if self._binds(r, later)]
        since_ns = self._since_ns(earlier)
        return earlier.promised_until_ns(self._ttl_ms, since_ns=since_ns, renewals=binding)

    def promised_in_all_ns(self, hold: Hold) -> int | None:
        """The end of its last lease, regardless of later grants. None: it has no lease, or a
        session whose renewals before the grant are not in the history."""
        until_ns = hold.promised_until_ns(self._ttl_ms, since_ns=self._since_ns(hold))
        unseen = self._terms.session and until_ns is not None and until_ns <= hold.start_ns
        return None if unseen else until_ns

    def _binds(self, renewal: Operation, later: Hold) -> bool:
        if self._terms.reentrant:  # the renewal may be of a later entry by its owner
            return renewal.end_ns is not None and renewal.end_ns <= later.start_ns
        return renewal.start_ns < later.start_ns

    def _let_in_early(self, earlier: Hold, later: Hold) -> bool:
        promised_ns = self.promised_until_ns(earlier, later)
        if promised_ns is not None:
            return later.start_ns < promised_ns
        if self._terms.session:
            return self._was_kept(earlier, later)
        # Without a lease the lock is promised until its release; a client without any later event
        # has lost its session, and its lock with it.
        return earlier.end_ns > later.start_ns or earlier.ending is Ending.LOST

    # --- when a promise begins, and what keeps it up ------------------------------------------

    def _since_ns(self, hold: Hold) -> int | None:
        """When its turn came, if it waited; of a session, if its client can have kept it alive."""
        turn_ns = self._turns.get(id(hold.acquire))
        if not self._terms.session:
            return turn_ns
        kept_ns, waited = self._last_kept_ns(hold), (hold.acquire.start_ns, hold.start_ns)
        if not self._undisturbed(hold.node, *waited):
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
            table = self._history.table
        except OverflowError:  # numbers beyond 64 bits, which no reader accepts
            return {}
        shared = np.fromiter((o.invoke.shared for o in operations), bool, len(operations))
        since = turn_came(table, self._terms, shared)
        waited = np.flatnonzero(since > table.start).tolist()
        return {id(operations[row]): int(since[row]) for row in waited}

    def _was_kept(self, earlier: Hold, later: Hold) -> bool:
        """Whether its session must have been alive, although the history has no renewals."""
        if not self._terms.session or self._tells_of_renewals or later.start_ns >= earlier.end_ns:
            return False
        since = earlier.acquire.start_ns, later.start_ns
        return self._undisturbed(earlier.node, *since) and not self._servers_were_mended(*since)

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

    def _undisturbed(self, node: str, start_ns: int, end_ns: int) -> bool:
        """Whether nothing can have suppressed its heartbeats. Stalls may, if none are recorded."""
        if not self._terms.backend:
            return False
        stalled_ns = total_ns(clipped(self._stalls[node], start_ns, end_ns))
        if stalled_ns * HEARTBEATS > (self._ttl_ms or 0) * NS_PER_MS:
            return False
        return not any(self._disturbs(f, node) for f in self._faults_at(start_ns, end_ns))

    def _faults_at(self, start_ns: int, end_ns: int) -> list[FaultSpan]:
        """The faults that were active at some time of the interval."""
        first = bisect_left(self._healed_by, start_ns)
        near = self._faults[first : bisect_right(self._fault_starts, end_ns)]
        return [fault for fault in near if fault.touches(start_ns, end_ns)]

    def _proven_at(self, start_ns: int, end_ns: int) -> list[FaultSpan]:
        return [f for f in self._faults_at(start_ns, end_ns) if f.proven_ns is not None]

    def _disturbs(self, fault: FaultSpan, node: str) -> bool:
        """Whether a fault may have suppressed the node's heartbeats. A cut has two sides, of which
        the history may name one; a wrong clock suppresses none, nor does a fault of other
        clients."""
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
        """The last release that took the lock of `earlier` away for certain, or else may have."""
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
        """The fault that was active for longest in that time. Servers' faults come first, slow ones
        last; faults that were still active at the later moments are preferred."""
        active = self._proven_at(start_ns, end_ns)
        of_servers = [f for f in active if not self._clients.issuperset(f.nodes or [""])]
        likely = of_servers or active
        likely = [fault for fault in likely if fault.effect is not Effect.SLOWS] or likely
        for moment_ns in later_ns:
            likely = [fault for fault in likely if fault.touches(moment_ns, end_ns)] or likely
        return _longest(likely, start_ns, end_ns)

    # --- the holder, unless the machine stopped it ------------------------------------------

    def _holder(self, earlier: Hold, later: Hold, write: Operation | None) -> Blame:
        promised_ns = self.promised_until_ns(earlier, later)
        acted_ns = earlier.end_ns if write is None else write.start_ns
        by_ns = 0 if promised_ns is None else max(0, acted_ns - promised_ns)
        # A write was sent by its answer: the client may have been stopped after it recorded it.
        done_ns = earlier.end_ns if write is None else write.last_ns
        kept_ns = promised_ns
        if self._terms.session:  # without a stall it would have been kept alive at least until then
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
        """The machine's stalls without which everything would have been done within the promise.
        None where an injected fault stopped the node: then the stall is that fault."""
        start_ns = hold.acquire.start_ns
        at_the_time = self._faults_at(start_ns, done_ns)
        struck = any(f.may_have_stopped(hold.node, start_ns, done_ns) for f in at_the_time)
        if promised_ns is None or struck or done_ns <= promised_ns:
            return ()
        stalls = clipped(self._stalls[hold.node], start_ns, done_ns)
        return stalls if done_ns - total_ns(stalls) <= promised_ns else ()


def _had_let_go(earlier: Hold, later: Hold, write: Operation) -> bool:
    """Whether the write came after its own release or its notice of a loss; or the release was in
    time, so that the lock is not to blame for what followed."""
    if earlier.ending not in (Ending.RELEASED, Ending.LOST):
        return False
    released_in_time = earlier.ending is Ending.RELEASED and earlier.end_ns <= later.start_ns
    return write.start_ns > earlier.end_ns or released_in_time


def _longest(faults: list[FaultSpan], start_ns: int, end_ns: int) -> FaultSpan | None:
    def touched_ns(fault: FaultSpan) -> int:
        healed_ns = end_ns if fault.healed_ns is None else min(fault.healed_ns, end_ns)
        return healed_ns - max(fault.start_ns, start_ns)

    return max(faults, key=touched_ns, default=None)
