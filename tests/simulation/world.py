"""Virtual time: what is due next happens next, and nothing of a paused node happens at all.

All chance comes from `Random.random()` alone, whose sequence Python promises to keep; nothing
depends on the order of a set. So a seed is the same world everywhere.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
PPM = 1_000_000


class Ask(NamedTuple):
    """What a client sends, to a server of the lock or to the storage."""

    f: str
    key: str
    secret: str = ""  # which attempt to hold the lock this belongs to
    ttl_ms: int = 0
    process: int = 0
    token: int | None = None
    value: str | None = None
    base: str | None = None
    owner: str = ""  # who may enter again what it holds
    shared: bool = False


class Reply(NamedTuple):
    ok: bool
    why: str = ""  # it was refused
    token: int | None = None
    value: str | None = None
    seq: int = 0


class Call(NamedTuple):
    """Send, and wait for the answer. The process goes on with None when none came in time."""

    server: str
    ask: Ask
    timeout_ns: int | None  # by the caller's own clock; None: this server always answers


# What a process yields: how long it sleeps by its own clock, or a call.
Effect: TypeAlias = int | Call
Steps: TypeAlias = Generator[Effect, Reply | None, T]


@dataclass(slots=True, eq=False)
class Node:
    """A machine with clocks of its own; while it is paused, what reaches it waits."""

    name: str
    drift_ppm: int = 0
    stepped_ns: int = 0  # how far its wall clock was set forward
    paused: bool = False
    down: bool = False  # what reaches it now is lost
    sheltered: bool = False  # no fault of the network touches it
    backlog: list[tuple[Callable[[Any], None], object]] = field(default_factory=list)

    def monotonic_ns(self, now_ns: int) -> int:
        return now_ns + now_ns * self.drift_ppm // PPM

    def wall_ns(self, now_ns: int) -> int:
        return self.monotonic_ns(now_ns) + self.stepped_ns

    def lasting_ns(self, own_ns: int) -> int:
        """How long that much time by its own clock really takes."""
        return own_ns * PPM // (PPM + self.drift_ppm)


class World:
    def __init__(self, seed: int) -> None:
        self.now_ns = 0
        self.random = Random(seed).random
        self._turn = 0
        self._due: list[tuple[int, int, Node, Callable[[Any], None], object]] = []

    def between(self, least: int, most: int) -> int:
        return least + int(self.random() * (most - least + 1))

    def after(self, delay_ns: int, node: Node, action: Callable[[T], None], argument: T) -> None:
        """What is due at the same time happens in the order in which it was asked for."""
        self._turn += 1
        heapq.heappush(self._due, (self.now_ns + delay_ns, self._turn, node, action, argument))

    def wake(self, node: Node) -> None:
        node.paused = False
        backlog, node.backlog = node.backlog, []
        for action, argument in backlog:
            self.after(0, node, action, argument)

    def run(self, until_ns: int) -> None:
        """To the end, or to that time: some locks let their clients wait for ever."""
        due = self._due
        while due and due[0][0] <= until_ns:
            self.now_ns, _, node, action, argument = heapq.heappop(due)
            if node.paused:
                node.backlog.append((action, argument))
            else:
                action(argument)
