"""Keeps a client at work under the lock while a fault strikes the servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from lockcheck.errors import FaultError
from lockcheck.nemesis.course.hunt import hunting
from lockcheck.nemesis.scene import Scene
from lockcheck.nemesis.triggers import Trigger
from lockcheck.nodes.node import Role
from lockcheck.nodes.waiting import wait_until

# The holder keeps the lock until another client is granted it, but at most for this part of its
# lease: its work must end in time, so that no violation can be blamed on an outlived lease.
PART_OF_LEASE = 0.6
# A lock whose holder has just died is granted again when its lease has run out.
LEASES_TO_WAIT = 2.0
POLL_S = 0.002


class HeldLock:
    """The locks that one client holds while it is kept at work; `let_go` lets it go on."""

    def __init__(self, scene: Scene, node: str, let_go: Callable[[], None]) -> None:
        self.node = node
        self._let_go = let_go
        self._holders = scene.holders
        self.keys = self._holders.now().get(node, frozenset())
        loop, longest_s = asyncio.get_running_loop(), PART_OF_LEASE * scene.plan.ttl_ms / 1000
        self._until = loop.time() + longest_s
        self._timer = loop.call_later(longest_s, let_go)

    def words(self) -> str:
        """Which locks it held, and whether it still does, by its own history."""
        held = self._holders.now().get(self.node, frozenset()) >= self.keys
        return f"{self.node} held {', '.join(sorted(self.keys))}{'' if held else ' at first'}"

    async def until_granted_to_another(self) -> None:
        """Waits until another client holds one of the locks, or its part of the lease is over."""
        left_s = max(0.0, self._until - asyncio.get_running_loop().time())
        with suppress(FaultError):
            await wait_until(self._has_another, "there is no other holder", left_s, POLL_S)

    def let_go(self) -> None:
        self._timer.cancel()
        self._let_go()

    def _has_another(self) -> bool:
        others = (keys for node, keys in self._holders.now().items() if node != self.node)
        return any(keys & self.keys for keys in others)


@asynccontextmanager
async def a_held_lock(scene: Scene) -> AsyncIterator[HeldLock | None]:
    """Keeps the next client that is granted a lock at work; None if none is granted one in time."""
    held = await _catch(scene)
    try:
        yield held
    finally:
        if held is not None:
            held.let_go()


async def _catch(scene: Scene) -> HeldLock | None:
    clients = scene.names(Role.CLIENT)
    with hunting(scene.holders, Trigger.ACQUIRE, clients, scene.is_free) as hunt:
        try:
            async with asyncio.timeout(LEASES_TO_WAIT * scene.plan.ttl_ms / 1000 + 1):
                node = await hunt.catch()
        except TimeoutError:
            return None
        return HeldLock(scene, node, hunt.keep(node, at_work=True))
