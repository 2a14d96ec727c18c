"""Which clients hold which locks, by their histories; and the marks that keep them at a point."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from lockcheck.client.aims import AIMS, waits_there
from lockcheck.history import Event, EventType, F, Terms
from lockcheck.history.live_holds import LiveHolds
from lockcheck.nemesis.course.leases import Leases


class Holders:
    def __init__(self, workdir: Path) -> None:
        self._workdir = workdir
        # The lock's model is not known here: a client that is granted it twice releases it twice.
        self._following = LiveHolds(Terms(model="reentrant"))
        self._process: dict[str, int | str] = {}  # the last process of each node's client
        self._listening: list[asyncio.Queue[str]] = []
        self._leases = Leases()
        self.numbers = count(1)  # of marks

    def observe(self, event: Event) -> None:
        """Follows the clients' events: call it with each as soon as it is read."""
        if event.node is None:
            return
        if event.type is EventType.INVOKE and event.of is None:
            self._acts_as(event.node, event.process, event.time)
        self._leases.observe(event, time.monotonic())
        self._following.feed(event)
        if event.f == F.ACQUIRE and event.type is EventType.OK:
            for grants in self._listening:
                grants.put_nowait(event.node)

    def _acts_as(self, node: str, process: int | str, time_ns: int) -> None:
        """A new process of a client holds nothing: what the previous one held has ended."""
        if self._process.setdefault(node, process) != process:
            self.ended(node, time_ns - 1)
            self._process[node] = process

    def ended(self, node: str, time_ns: int) -> None:
        """The node's client was ended at that time, and holds nothing any more."""
        self._following.ended(node, time_ns)
        self._following.settle(time_ns)

    def now(self) -> dict[str, frozenset[str]]:
        """The keys that each node holds."""
        held = [(each.acquire.node, each.acquire.key) for each in self._following.holders()]
        return {node: frozenset(key for name, key in held if name == node) for node, _ in held}

    def near_expiry(self) -> list[str]:
        """The nodes that hold a lock whose lease is about to expire."""
        now = time.monotonic()
        due = [
            (node, self._leases.near_expiry(node, k)) for node, ks in self.now().items() for k in ks
        ]
        return sorted({node for node, at in due if at is not None and at <= now})

    @contextmanager
    def grants(self) -> Iterator[asyncio.Queue[str]]:
        """A queue of the nodes that are granted a lock from now on, one entry a grant."""
        queue = asyncio.Queue[str]()
        self._listening.append(queue)
        try:
            yield queue
        finally:
            self._listening.remove(queue)

    # --- marks -------------------------------------------------------------------------------

    def mark(self, node: str, mark: str) -> None:
        with suppress(OSError):  # without its mark, the client is struck wherever it is
            self._path(node, mark).touch()

    def unmark(self, node: str, mark: str) -> None:
        with suppress(OSError):  # it is gone already, or its client gives up waiting by itself
            self._path(node, mark).unlink()

    def stands(self, node: str, mark: str) -> bool:
        """Whether the client has stopped at the mark."""
        return waits_there(self._path(node, mark))

    def _path(self, node: str, mark: str) -> Path:
        return self._workdir / node / AIMS / mark
