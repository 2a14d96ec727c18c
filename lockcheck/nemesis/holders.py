"""Who holds a lock, by what the clients write, and the marks that ask clients to stay there."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from lockcheck.history import Event, EventType, F, Notice
from lockcheck.nemesis.leases import Leases
from lockcheck.workloads.aims import AIMS, stands_there


class Holders:
    def __init__(self, workdir: Path) -> None:
        self._workdir = workdir
        self._held: Counter[tuple[str, str]] = Counter()  # (node, key): entered how often
        self._process: dict[str, int | str] = {}  # the last process of each node's client
        self._listening: list[asyncio.Queue[str]] = []
        self._leases = Leases()
        self.numbers = count(1)  # of marks

    def observe(self, event: Event) -> None:
        """What the clients write, the moment it is read."""
        if event.node is None:
            return
        if event.type is EventType.INVOKE and event.of is None:
            self._acts_as(event.node, event.process)
        self._leases.observe(event, time.monotonic())
        hold = (event.node, event.key or "")
        if event.f == F.ACQUIRE and event.type is EventType.OK:
            self._held[hold] += 1
            for grants in self._listening:
                grants.put_nowait(event.node)
        elif event.f == F.RELEASE and event.type is EventType.INVOKE:
            self._drop(hold, 1)
        elif event.f == Notice.LOST:
            self._drop(hold, self._held[hold])
        elif _retires(event):  # and releases nothing any more
            self.forget(event.node)

    def _acts_as(self, node: str, process: int | str) -> None:
        """A new process holds nothing of what the one before it held."""
        if self._process.setdefault(node, process) != process:
            self.forget(node)
            self._process[node] = process

    def _drop(self, hold: tuple[str, str], entered: int) -> None:
        self._held[hold] -= entered
        if self._held[hold] <= 0:
            del self._held[hold]

    def forget(self, node: str) -> None:
        """It holds nothing any more."""
        for hold in [hold for hold in self._held if hold[0] == node]:
            del self._held[hold]

    def now(self) -> dict[str, frozenset[str]]:
        """The keys that each node holds."""
        nodes = {node for node, _ in self._held}
        return {node: frozenset(k for name, k in self._held if name == node) for node in nodes}

    def near_expiry(self) -> list[str]:
        """Nodes that hold a lock of whose lease most is over."""
        now = time.monotonic()
        due = {hold: self._leases.near_expiry(*hold) for hold in self._held}
        return sorted({node for (node, _), at in due.items() if at is not None and at <= now})

    @contextmanager
    def grants(self) -> Iterator[asyncio.Queue[str]]:
        """The nodes that are granted a lock from now on."""
        queue = asyncio.Queue[str]()
        self._listening.append(queue)
        try:
            yield queue
        finally:
            self._listening.remove(queue)

    # --- marks -------------------------------------------------------------------------------

    def mark(self, node: str, mark: str) -> None:
        with suppress(OSError):  # a client that cannot be asked is struck wherever it is
            self._path(node, mark).touch()

    def unmark(self, node: str, mark: str) -> None:
        with suppress(OSError):  # it was not there, or its client gives up waiting by itself
            self._path(node, mark).unlink()

    def stands(self, node: str, mark: str) -> bool:
        """Whether it says that it has stopped at the mark."""
        return stands_there(self._path(node, mark))

    def _path(self, node: str, mark: str) -> Path:
        return self._workdir / node / AIMS / mark


def _retires(event: Event) -> bool:
    """It answers an operation of the client's own, and nobody knows what that did."""
    is_answer = event.type is EventType.INFO and event.f not in (Notice.QUEUED, Notice.STALL)
    return is_answer and event.of is None
