"""What a fault is: something that can be injected into a node, proven, and healed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from lockcheck.errors import FaultError
from lockcheck.nodes import Node


class Target(StrEnum):
    HOLDER = "holder"  # the client that has just been granted the lock
    SERVER = "server"  # one of the lock's servers
    RANDOM = "random"  # any server or client, at any time


class Fault(Protocol):
    async def inject(self, node: Node) -> str:
        """Returns the proof that it took; raises FaultError where there is none."""

    async def heal(self, node: Node) -> None:
        """Undoes it and sees that it is undone. Harmless where nothing is to be healed."""


@dataclass(frozen=True, slots=True)
class FaultKind:
    name: str
    summary: str
    make: Callable[[], Fault]
    targets: tuple[Target, ...]  # the first is the default
    duration_ms: Callable[[int], int]  # of the TTL: long enough to matter


async def wait_until(
    condition: Callable[[], bool], what: str, timeout_s: float, poll_s: float = 0.001
) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not condition():
        if loop.time() > deadline:
            raise FaultError(f"waited {timeout_s:g} s in vain for this: {what}")
        await asyncio.sleep(poll_s)
