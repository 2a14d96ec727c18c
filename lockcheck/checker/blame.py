"""Why the later holder was let in while the earlier one still believed.

The promise of a lease runs at least until `acquire`'s invocation + TTL, or that of the last renewal
the holder had been told of. Let in before that: the service broke its promise. After: the holder
outlived its lease. Nobody is accused where something else explains it: a blind release by a
third, a jump of the host's clock, a stall of the machine.
"""

from __future__ import annotations

from collections import defaultdict

from lockcheck.checker.finding import Blame, Culprit
from lockcheck.checker.order import Spans, concurrent
from lockcheck.checker.releases import BlindRelease, blind_releases
from lockcheck.checker.stalls import clipped, host_stepped_ns, total_ns
from lockcheck.history import Ending, FaultSpan, History, Hold, Operation, Stall


def blame(history: History, earlier: Hold, later: Hold, write: Operation | None = None) -> Blame:
    return Court(history).blame(earlier, later, write)


class Court:
    """A history, made ready to answer the same question for many pairs of holds."""

    def __init__(self, history: History) -> None:
        self._ttl_ms = history.terms.ttl_ms
        self._faults = history.faults
        self._steps = history.clock_steps
        self._clients = frozenset(operation.node for operation in history.operations)
        self._releases = {
            key: Spans((r.operation.start_ns, r.answered_ns, r) for r in releases)
            for key, releases in blind_releases(history).items()
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
        """As it stood when `later` was let in: no renewal after that could bind the service."""
        return earlier.promised_until_ns(self._ttl_ms, as_of_ns=later.start_ns)

    def _let_in_early(self, earlier: Hold, later: Hold) -> bool:
        promised_ns = self.promised_until_ns(earlier, later)
        if promised_ns is not None:
            return later.start_ns < promised_ns
        # Without a lease the lock is promised until its release; a client that was never seen
        # again has lost its session, and its lock with it.
        return earlier.end_ns > later.start_ns or earlier.ending is Ending.LOST

    # --- the service, unless something took the lock away -----------------------------------

    def _service(self, earlier: Hold, later: Hold, write: Operation | None) -> Blame:
        promised_ns = self.promised_until_ns(earlier, later)
        acted_ns = earlier.end_ns if write is None else write.start_ns
        until_ns = acted_ns if promised_ns is None else promised_ns
        by_ns = max(0, until_ns - later.start_ns)
        release = self._taken_by(earlier, later)
        if release is not None:
            return Blame(
                Culprit.CLIENT,
                by_ns,
                promised_ns,
                release=release.operation,
                released_by=release.by,
            )
        start_ns, let_in_ns = earlier.acquire.start_ns, later.start_ns
        stepped_ns = host_stepped_ns(self._steps, self._faults, start_ns, let_in_ns)
        if promised_ns is not None and by_ns <= stepped_ns:  # else the step explains a part only
            return Blame(Culprit.MACHINE, by_ns, promised_ns)
        fault = self.fault_anywhere(start_ns, let_in_ns)
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

    def fault_anywhere(self, start_ns: int, end_ns: int) -> FaultSpan | None:
        """Of the servers' faults, or else of any, the one that lasted longest in that time."""
        active = [fault for fault in self._faults if _explains(fault, start_ns, end_ns)]
        servers = [fault for fault in active if fault.node not in self._clients]
        return _longest(servers or active, start_ns, end_ns)

    # --- the holder, unless the machine stopped it ------------------------------------------

    def _holder(self, earlier: Hold, later: Hold, write: Operation | None) -> Blame:
        promised_ns = self.promised_until_ns(earlier, later)
        acted_ns = earlier.end_ns if write is None else write.start_ns
        by_ns = 0 if promised_ns is None else max(0, acted_ns - promised_ns)
        done_ns = earlier.end_ns if write is None else _done_ns(write)
        stalls = self._excusing_stalls(earlier, promised_ns, done_ns)
        if stalls:
            return Blame(Culprit.MACHINE, by_ns, promised_ns, stalls=stalls)
        moment_ns = later.start_ns if write is None else done_ns
        return Blame(Culprit.HOLDER, by_ns, promised_ns, self._fault_on(earlier, moment_ns))

    def _fault_on(self, hold: Hold, until_ns: int) -> FaultSpan | None:
        start_ns = hold.acquire.start_ns
        mine = [f for f in self._faults if f.node == hold.node]
        active = [fault for fault in mine if _explains(fault, start_ns, until_ns)]
        return _longest(active, start_ns, until_ns)

    def _excusing_stalls(
        self, hold: Hold, promised_ns: int | None, done_ns: int
    ) -> tuple[Stall, ...]:
        """The machine's stalls without which it would all have been done within the promise.

        None where a fault of ours touched the node: then the stall is that fault.
        """
        start_ns = hold.acquire.start_ns
        struck = any(f.node == hold.node and f.touches(start_ns, done_ns) for f in self._faults)
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


def _explains(fault: FaultSpan, start_ns: int, end_ns: int) -> bool:
    return fault.proven_ns is not None and fault.touches(start_ns, end_ns)


def _longest(faults: list[FaultSpan], start_ns: int, end_ns: int) -> FaultSpan | None:
    def touched_ns(fault: FaultSpan) -> int:
        healed_ns = end_ns if fault.healed_ns is None else min(fault.healed_ns, end_ns)
        return healed_ns - max(fault.start_ns, start_ns)

    return max(faults, key=touched_ns, default=None)
