"""The state of a run while it lasts: reported by the agent, shown by the command line."""

from __future__ import annotations

import threading
import time

from lockcheck.agent.link import Message
from lockcheck.checker.live import OverlapWatch
from lockcheck.history import Event, EventType, F, Notice, Terms
from lockcheck.history.event import NEMESIS, NS_PER_MS
from lockcheck.run.notes import LiveState

# All events that are older have arrived: the agent reads the clients' files every 2 ms.
SETTLED_AFTER_NS = 250 * NS_PER_MS


class Monitor:
    """`hear` is called on the thread that reads the pipe, `state` on that of the experiment."""

    def __init__(self, terms: Terms) -> None:
        self._lock = threading.Lock()
        self._watch = OverlapWatch(terms)
        self._began = time.monotonic()
        self._latest_ns = 0
        self._operations = 0
        self._acquisitions = 0
        self._faults: dict[int, str] = {}
        self.broken: list[Message] = []

    def hear(self, message: Message) -> None:
        with self._lock:
            if message.ended is not None:
                self.broken.append(message)
            if message.event is not None:
                self._take(message.event)

    def _take(self, event: Event) -> None:
        self._latest_ns = max(self._latest_ns, event.time)
        self._watch.feed(event)
        if event.process == NEMESIS:
            self._note_fault(event)
            return
        self._operations += event.type is EventType.INVOKE
        self._acquisitions += event.f == F.ACQUIRE and event.type is EventType.OK

    def _note_fault(self, event: Event) -> None:
        if event.fault is None:
            return
        if event.f == Notice.HEAL:
            if event.type is not EventType.INVOKE:
                self._faults.pop(event.fault, None)
        elif event.type is EventType.OK:
            of = f" of {' and '.join(event.struck)}" if event.struck else ""
            self._faults[event.fault] = event.f + of

    def state(self) -> LiveState:
        with self._lock:
            self._watch.settle(self._latest_ns - SETTLED_AFTER_NS)
            holders = tuple(
                f"{key}: {' and '.join(held)}"
                for key, held in sorted(self._watch.holders().items())
            )
            return LiveState(
                elapsed_s=time.monotonic() - self._began,
                operations=self._operations,
                acquisitions=self._acquisitions,
                holders=holders,
                faults=tuple(self._faults.values()),
                overlaps=self._watch.overlaps,
            )
