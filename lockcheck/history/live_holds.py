"""The current holders of locks, from files that clients still write to.

Each file is read in its own order, and the order among files does not matter: what is known of a
hold comes from its own client and that client's keepers.
"""

from __future__ import annotations

from lockcheck.history.event import NEMESIS, STORAGE, Event, EventType, F, Notice, Terms
from lockcheck.history.holding import Holding, OpenHold
from lockcheck.history.model import Operation

BEFORE_ALL_NS = -(1 << 61)
NOT_BY_THE_PROCESS = frozenset(
    {Notice.STALL, Notice.CLOCK_STEP, Notice.CLOCKS, Notice.TERMS, Notice.PROGRAM}
)


class LiveHolds:
    """Tracks open holds while events are fed to it."""

    def __init__(self, terms: Terms) -> None:
        self._holding = Holding(terms)
        # By operation, too: a keeper may be logged under the name of its client.
        self._pending: dict[tuple[int | str, str], Event] = {}
        self._last: dict[int | str, Event] = {}  # by process
        self._ended_ns: dict[str, int] = {}  # by node: when its client was killed

    def feed(self, event: Event) -> OpenHold | None:
        """Takes the next event of its file; returns the hold that begins with it, if one does."""
        if event.process in (NEMESIS, STORAGE) or event.f in NOT_BY_THE_PROCESS:
            return None
        process, seen_ns = event.process, self._holding.seen_ns
        seen_before_ns = seen_ns.get(process, event.time)
        seen_ns[process] = event.time
        self._last[process] = event
        begun = None
        if event.type is EventType.INVOKE:
            self._pending[process, event.f] = event
            if event.f == F.ACQUIRE and not self._holding.terms.reentrant:
                # It acquires again without a release: it gave up its hold at an unknown time.
                self._holding.give_up(process, event.key or "", seen_before_ns)
        elif event.f == Notice.LOST:
            self._holding.lose(process, event.key or "", event.time)
        elif event.f != Notice.QUEUED:
            begun = self._answered(event)
        self._holding.holds.clear()  # only open holds are kept
        return begun

    def _answered(self, event: Event) -> OpenHold | None:
        invoke = self._pending.pop((event.process, event.f), None)
        if invoke is None:
            return None
        operation = Operation(invoke, event)
        whose = operation.owner, operation.key
        before = self._holding.held.get(whose)
        self._holding.add(operation, self._pending.get((operation.owner, F.RELEASE)))
        if event.type is EventType.INFO:
            self._forget(event.process)  # the outcome is unknown: the process is retired
        held = self._holding.held.get(whose)
        return None if held is before else held

    def ended(self, node: str, time_ns: int) -> None:
        """Records that the client on this node was killed: its open operations will not finish."""
        self._ended_ns[node] = max(time_ns, self._ended_ns.get(node, BEFORE_ALL_NS))

    def certain_until_ns(self, held: OpenHold) -> int:
        """Until when this hold is certain by the events so far."""
        return self._holding.cut_at_last_event(self._holding.by_now(held)).end_ns

    def holders(self) -> list[OpenHold]:
        """The open holds, by time of grant, of clients that were not killed since they acted."""
        believed = [
            held
            for (process, key), held in self._holding.held.items()
            if not self._is_releasing(held, process, key) and not self._is_over(self._last[process])
        ]
        return sorted(believed, key=lambda held: held.acquire.end_ns or 0)

    def _is_releasing(self, held: OpenHold, process: int | str, key: str) -> bool:
        release = self._pending.get((process, F.RELEASE))
        return held.entered == 1 and release is not None and (release.key or "") == key

    def settle(self, now_ns: int) -> None:
        """Drops clients that were killed by `now_ns`, up to which all events have been fed."""
        over = [process for process, last in self._last.items() if self._is_over(last, now_ns)]
        for process in over:
            self._forget(process)

    def _is_over(self, last: Event, now_ns: int | None = None) -> bool:
        ended_ns = self._ended_ns.get(last.node or "", BEFORE_ALL_NS)
        return last.time <= ended_ns and (now_ns is None or ended_ns <= now_ns)

    def _forget(self, process: int | str) -> None:
        seen_ns = self._holding.seen_ns.pop(process)
        del self._last[process]
        for whose in [held for held in self._holding.held if held[0] == process]:
            self._holding.give_up(*whose, seen_ns)
        for asked in [asked for asked in self._pending if asked[0] == process]:
            del self._pending[asked]
