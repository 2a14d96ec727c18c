"""A holder that keeps the lock while something happens to the servers: so it is a held lock."""

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

# It keeps it until somebody else is let in, but not for longer than this part of its lease: it must
# end its work in time, so that nobody can say that it outlived its lease.
PART_OF_LEASE = 0.6
# A lock whose holder has just died is granted again when its lease has run out.
LEASES_TO_WAIT = 2.0
POLL_S = 0.002


class Kept:
    def __init__(self, scene: Scene, node: str, let_go: Callable[[], None]) -> None:
        self.node = node
        self._let_go = let_go
        self._holders = scene.holders
        self.keys = self._holders.now().get(node, frozenset())
        loop, longest_s = asyncio.get_running_loop(), PART_OF_LEASE * scene.plan.ttl_ms / 1000
        self._until = loop.time() + longest_s
        self._timer = loop.call_later(longest_s, let_go)

    def words(self) -> str:
        """Whether it still holds what it held, by its own history."""
        held = self._holders.now().get(self.node, frozenset()) >= self.keys
        return f"{self.node} held {', '.join(sorted(self.keys))}{'' if held else ' at first'}"

    async def until_another_is_in(self) -> None:
        """Or until it may keep the lock no longer."""
        left_s = max(0.0, self._until - asyncio.get_running_loop().time())
        with suppress(FaultError):
            await wait_until(self._is_another_in, "there is no other holder", left_s, POLL_S)

    def let_go(self) -> None:
        self._timer.cancel()
        self._let_go()

    def _is_another_in(self) -> bool:
        others = (keys for node, keys in self._holders.now().items() if node != self.node)
        return any(keys & self.keys for keys in others)


@asynccontextmanager
async def a_held_lock(scene: Scene) -> AsyncIterator[Kept | None]:
    """The next client that is granted a lock is kept meanwhile; None if nobody is, in time."""
    kept = await _catch(scene)
    try:
        yield kept
    finally:
        if kept is not None:
            kept.let_go()


async def _catch(scene: Scene) -> Kept | None:
    clients = scene.names(Role.CLIENT)
    with hunting(scene.holders, Trigger.ACQUIRE, clients, scene.is_free) as hunt:
        try:
            async with asyncio.timeout(LEASES_TO_WAIT * scene.plan.ttl_ms / 1000 + 1):
                node = await hunt.catch()
        except TimeoutError:
            return None
        return Kept(scene, node, hunt.keep(node, at_work=True))
