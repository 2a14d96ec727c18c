"""Why the later holder was let in while the earlier one still believed; docs/design/verdicts.md
has the rules.

Neither service nor holder is accused if something else explains the overlap: a blind release by a
third client, a jump of the host's clock, a stall of the machine, the drift of two clocks. Where it
is not known from when a promise counts, neither is who broke it.
"""

from __future__ import annotations

from collections.abc import Iterable

from lockcheck.checker.evidence.order import Spans, concurrent
from lockcheck.checker.evidence.promised import Promise, Promises, longest
from lockcheck.checker.evidence.releases import BlindRelease
from lockcheck.checker.evidence.stalls import clipped, host_stepped_ns, total_ns
from lockcheck.checker.finding import Blame, Culprit
from lockcheck.history import Effect, Ending, FaultSpan, History, Hold, Operation, Stall


class Attribution:
    """Decides who is to blame for a pair of holds; prepared once for all pairs of a history."""

    def __init__(
        self,
        history: History,
        releases: dict[str, list[BlindRelease]],
        spare: dict[str, list[BlindRelease]],
    ) -> None:
        self._spare = spare
        self._history = history
        self._terms = history.terms
        self._clients = history.clients
        self.promises = Promises(history)
        self._releases = {
            key: Spans((r.operation.start_ns, r.answered_ns, r) for r in suspects)
            for key, suspects in releases.items()
        }

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
        if self.let_in_early(first, second) and not self.let_in_early(second, first):
            return second, first
        return first, second

    def blame(self, earlier: Hold, later: Hold, write: Operation | None = None) -> Blame:
        """`write`: the earlier holder's late write; None if it only held too long."""
        promise = self.promises.of(earlier, later)
        if write is not None and _had_let_go(earlier, later, write):
            by_ns = max(0, write.start_ns - earlier.end_ns)
            return Blame(Culprit.CLIENT, by_ns, promise.until_ns)
        if self.let_in_early(earlier, later, promise):
            return self._service(earlier, later, write, promise)
        neither = self._neither(earlier, later, write, promise)
        return self._holder(earlier, later, write, promise) if neither is None else neither

    def promised_until_ns(self, earlier: Hold, later: Hold) -> int | None:
        """The end of the promise as it stood at `later`'s grant. None: promised until its release
        (no lease, or a session kept alive), or not known."""
        return self.promises.of(earlier, later).until_ns

    def let_in_early(self, earlier: Hold, later: Hold, promise: Promise | None = None) -> bool:
        """Whether the promise to the earlier one was certainly broken."""
        promise = self.promises.of(earlier, later) if promise is None else promise
        if not promise.until_its_release:
            return promise.sure_ns is not None and later.start_ns < promise.sure_ns
        if self._terms.session:
            return self.promises.kept(earlier, later)
        # Without a lease the lock is promised until its release; a client without any later event
        # has lost its session, and its lock with it.
        return earlier.end_ns > later.start_ns or earlier.ending is Ending.LOST

    # --- the service, unless something took the lock away -----------------------------------

    def _service(
        self, earlier: Hold, later: Hold, write: Operation | None, promise: Promise
    ) -> Blame:
        until_ns = _acted_ns(earlier, write) if promise.until_ns is None else promise.until_ns
        by_ns = max(0, until_ns - later.start_ns)
        took = self._taken_by(earlier, later)
        if took is not None:
            return Blame(
                Culprit.CLIENT, by_ns, promise.until_ns, release=took.operation, released_by=took.by
            )
        start_ns, let_in_ns = earlier.acquire.start_ns, later.start_ns
        steps, faults = self._history.clock_steps, self._history.faults
        stepped_ns = host_stepped_ns(steps, faults, start_ns, let_in_ns)
        if promise.until_ns is not None and by_ns <= stepped_ns:  # else it explains a part only
            return Blame(Culprit.MACHINE, by_ns, promise.until_ns)
        fault = self.fault_anywhere(start_ns, let_in_ns, (earlier.start_ns, let_in_ns))
        return Blame(Culprit.SERVICE, by_ns, promise.until_ns, fault)

    def _taken_by(self, earlier: Hold, later: Hold) -> BlindRelease | None:
        """The last release that took the lock of `earlier` away for certain, or else may have; of a
        lock with permits, the last one that may have made one too many."""
        for release in reversed(self._spare.get(earlier.key, ())):
            if release.operation.start_ns < later.start_ns:
                return release
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
        return longest(likely, start_ns, end_ns)

    def _proven_at(self, start_ns: int, end_ns: int) -> list[FaultSpan]:
        at_the_time = self.promises.faults_at(start_ns, end_ns)
        return [fault for fault in at_the_time if fault.proven_ns is not None]

    # --- neither of them ---------------------------------------------------------------------

    def _neither(
        self, earlier: Hold, later: Hold, write: Operation | None, promise: Promise
    ) -> Blame | None:
        """None: the promise was over, and the holder went on."""
        until_ns, let_in_ns, acted_ns = promise.until_ns, later.start_ns, _acted_ns(earlier, write)
        disturbed = self.promises.disturbing(earlier.node, earlier.acquire.start_ns, let_in_ns)
        if until_ns is None or promise.latest_ns is None:
            unknown = not promise.until_its_release and not disturbed
            return Blame(Culprit.UNKNOWN) if unknown else None
        slack_ns = until_ns - (promise.sure_ns or until_ns)
        early_ns = promise.latest_ns - let_in_ns
        if early_ns <= 0:
            return None
        if self._terms.session and promise.latest_ns == until_ns:
            return None if disturbed else Blame(Culprit.UNKNOWN, early_ns, until_ns)
        in_time = acted_ns <= promise.latest_ns + slack_ns
        if in_time and write is None and early_ns <= slack_ns:
            return Blame(Culprit.CLOCKS, early_ns, promise.latest_ns)
        # Of a client that waited, it is not known when it was granted.
        unknown = promise.latest_ns > until_ns and acted_ns <= promise.latest_ns
        return Blame(Culprit.UNKNOWN, 0, until_ns) if unknown else None

    # --- the holder, unless the machine stopped it ------------------------------------------

    def _holder(
        self, earlier: Hold, later: Hold, write: Operation | None, promise: Promise
    ) -> Blame:
        promised_ns, over_ns = promise.until_ns, promise.latest_ns
        if self._terms.session and promised_ns is not None and promised_ns <= earlier.start_ns:
            # Counted from an acquire that waited for longer: all that is known is that the session
            # was over when the next client was let in.
            over_ns = later.start_ns
        acted_ns = _acted_ns(earlier, write)
        by_ns = 0 if over_ns is None else max(0, acted_ns - over_ns)
        # A write was sent by its answer: the client may have been stopped after it recorded it.
        done_ns = earlier.end_ns if write is None else write.last_ns
        kept_ns = over_ns
        if self._terms.session and promise.ended_by is None:
            # Without a stall it would have been kept alive at least until then.
            kept_ns = max(later.start_ns, over_ns or later.start_ns)
        stalls = self._excusing_stalls(earlier, kept_ns, done_ns)
        if stalls:
            return Blame(Culprit.MACHINE, by_ns, promised_ns, stalls=stalls)
        moment_ns = later.start_ns if write is None else done_ns
        fault = self._fault_on(earlier, moment_ns)
        return Blame(Culprit.HOLDER, by_ns, promised_ns, fault, ended_by=promise.ended_by)

    def _fault_on(self, hold: Hold, until_ns: int) -> FaultSpan | None:
        start_ns = hold.acquire.start_ns
        active = self._proven_at(start_ns, until_ns)
        struck = [fault for fault in active if hold.node in fault.nodes]
        mine = struck or [fault for fault in active if fault.concerns(hold.node)]
        return longest(mine, start_ns, until_ns)

    def _excusing_stalls(
        self, hold: Hold, promised_ns: int | None, done_ns: int
    ) -> tuple[Stall, ...]:
        """The machine's stalls without which everything would have been done within the promise.
        None where an injected fault stopped the node: then the stall is that fault."""
        start_ns = hold.acquire.start_ns
        at_the_time = self.promises.faults_at(start_ns, done_ns)
        struck = any(f.may_have_stopped(hold.node, start_ns, done_ns) for f in at_the_time)
        if promised_ns is None or struck or done_ns <= promised_ns:
            return ()
        stalls = clipped(self.promises.stalls[hold.node], start_ns, done_ns)
        return stalls if done_ns - total_ns(stalls) <= promised_ns else ()


def _acted_ns(earlier: Hold, write: Operation | None) -> int:
    return earlier.end_ns if write is None else write.start_ns


def _had_let_go(earlier: Hold, later: Hold, write: Operation) -> bool:
    """Whether the write came after its own release or its notice of a loss; or the release was in
    time, so that the lock is not to blame for what followed."""
    if earlier.ending not in (Ending.RELEASED, Ending.LOST):
        return False
    released_in_time = earlier.ending is Ending.RELEASED and earlier.end_ns <= later.start_ns
    return write.start_ns > earlier.end_ns or released_in_time
