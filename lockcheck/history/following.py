"""Who holds what, by the files of clients that still write to them.

Each file is read in its own order, and no matter in which order they are read among each other:
what is known of a hold is what its own client, and its keepers, have written.
"""

from __future__ import annotations

from lockcheck.history.event import NEMESIS, STORAGE, Event, EventType, F, Notice, Terms
from lockcheck.history.holding import Holding, OpenHold
from lockcheck.history.model import Operation

BEFORE_ALL_NS = -(1 << 61)
NOT_OF_THE_CLIENT_ITSELF = frozenset({Notice.STALL, Notice.CLOCK_STEP, Notice.CLOCKS, Notice.TERMS})


class Following:
    def __init__(self, terms: Terms) -> None:
        self._holding = Holding(terms)
        # By what was asked, too: a keeper can be logged under the name of its client.
        self._pending: dict[tuple[int | str, str], Event] = {}
        self._last: dict[int | str, Event] = {}  # of each process
        self._ended_ns: dict[str, int] = {}  # of each node: its client was ended

    def feed(self, event: Event) -> OpenHold | None:
        """Returns the hold that begins with it."""
        if event.process in (NEMESIS, STORAGE) or event.f in NOT_OF_THE_CLIENT_ITSELF:
            return None
        process, seen_ns = event.process, self._holding.seen_ns
        seen_before_ns = seen_ns.get(process, event.time)
        seen_ns[process] = event.time
        self._last[process] = event
        begun = None
        if event.type is EventType.INVOKE:
            self._pending[process, event.f] = event
            if event.f == F.ACQUIRE and not self._holding.terms.reentrant:
                # It asks again without a release: it had given up, nobody knows when.
                self._holding.give_up(process, event.key or "", seen_before_ns)
        elif event.f == Notice.LOST:
            self._holding.lose(process, event.key or "", event.time)
        elif event.f != Notice.QUEUED:
            begun = self._answered(event)
        self._holding.holds.clear()  # each is known to whoever asked for it
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
            self._forget(event.process)  # nobody knows what it did, so it does nothing more
        held = self._holding.held.get(whose)
        return None if held is before else held

    def ended(self, node: str, time_ns: int) -> None:
        """Its client does nothing more of what it was about to do."""
        self._ended_ns[node] = max(time_ns, self._ended_ns.get(node, BEFORE_ALL_NS))

    def certain_until_ns(self, held: OpenHold) -> int:
        return self._holding.as_far_as_seen(self._holding.by_now(held)).end_ns

    def holders(self) -> list[OpenHold]:
        """Of those who believe that they hold a lock, by time of grant. Whoever was ended since it
        was heard of last believes nothing any more."""
        believed = [
            held
            for (process, key), held in self._holding.held.items()
            if not self._leaves(held, process, key) and not self._is_over(self._last[process])
        ]
        return sorted(believed, key=lambda held: held.acquire.end_ns or 0)

    def _leaves(self, held: OpenHold, process: int | str, key: str) -> bool:
        release = self._pending.get((process, F.RELEASE))
        return held.entered == 1 and release is not None and (release.key or "") == key

    def settle(self, now_ns: int) -> None:
        """All events up to `now_ns` have been fed: whoever was ended by then is forgotten. With
        each life of a client there would be one more."""
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
