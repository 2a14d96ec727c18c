"""Watches the clients' files, the nodes and the host's clock during a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from lockcheck.agent.fleet import Fleet
from lockcheck.agent.link import Message
from lockcheck.agent.tail import Tail
from lockcheck.history import Event, EventType, Notice
from lockcheck.history.event import NS_PER_MS, RUN
from lockcheck.nodes.node import pids_of

MAKE_ROOM = "make room where the run's files are: see --out, or, in docker, the engine's own disk"
TAIL_POLL_S = 0.002
WATCH_POLL_S = 0.05
# Redis expires keys by the host's wall clock. Smaller corrections are not reported.
CLOCK_STEP_MS = 20.0


@dataclass(slots=True, eq=False)
class Watch:
    """Passes on the clients' events, and reports nodes that exit and steps of the clock."""

    fleet: Fleet
    tail: Tail
    _: KW_ONLY
    now_ns: Callable[[], int]
    record: Callable[[Event], None]
    observe: Callable[[Event], None]
    send: Callable[[Message], None]
    _nodes_may_end: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._follow_clients(), name="following the clients"),
            asyncio.create_task(self._watch_nodes(), name="watching the nodes"),
            asyncio.create_task(self._watch_clock(), name="watching the clock"),
        ]
        for task in self._tasks:
            task.add_done_callback(self._report_if_broken)

    def nodes_may_end(self) -> None:
        """Stops reporting nodes that exit: from now on the agent ends them."""
        self._nodes_may_end = True

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._pass_on_new_events()

    def _report_if_broken(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.send(Message(ended="the agent", last_words=f"{task.get_name()}: {error!r}"))

    async def _follow_clients(self) -> None:
        while True:
            self._pass_on_new_events()
            await asyncio.sleep(TAIL_POLL_S)

    def _pass_on_new_events(self) -> None:
        for event in self.tail.read():
            self.observe(event)
            self.send(Message(event=event))

    async def _watch_nodes(self) -> None:
        """Reports nodes that exit unexpectedly to the command line."""
        watched = {name: node for name, node in self.fleet.nodes.items() if not node.spec.elsewhere}
        while watched and not self._nodes_may_end:
            for name, pids in pids_of(watched.values()).items():
                node = watched[name]
                if not pids and not node.down and not node.may_end:
                    del watched[name]
                    cure = MAKE_ROOM if self.fleet.found_no_space(name) else ""
                    words = self.fleet.last_words(name)
                    self.send(Message(ended=name, last_words=words, cure=cure))
            await asyncio.sleep(WATCH_POLL_S)

    async def _watch_clock(self) -> None:
        apart_ns = _clocks_apart_ns()
        while True:
            await asyncio.sleep(WATCH_POLL_S)
            step_ms = (_clocks_apart_ns() - apart_ns) / NS_PER_MS
            if abs(step_ms) > CLOCK_STEP_MS:
                apart_ns = _clocks_apart_ns()
                step = EventType.INFO, Notice.CLOCK_STEP
                self.record(Event(self.now_ns(), RUN, *step, value=round(step_ms, 3)))


def _clocks_apart_ns() -> int:
    """How far the wall clock is from the monotonic one, which is never set. Both are read at one
    moment: after a stall in between, they are read again."""
    while True:
        before_ns = time.monotonic_ns()
        wall_ns = time.time_ns()
        if (after_ns := time.monotonic_ns()) - before_ns < NS_PER_MS:
            return wall_ns - after_ns
