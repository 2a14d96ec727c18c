"""A holder that goes on holding while something befalls the servers: so it befalls a held lock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from lockcheck.errors import FaultError
from lockcheck.nemesis.base import wait_until
from lockcheck.nemesis.hunt import hunting
from lockcheck.nemesis.scene import Scene
from lockcheck.nemesis.triggers import Trigger
from lockcheck.nodes.node import Role

# It goes on until somebody else is let in, but not for longer than this part of its lease: it is to
# end its work in time, so that nobody can say that it outlived its lease.
PART_OF_LEASE = 0.6
# A lock that was just lost with its holder is granted again when its lease has run out.
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
        """What became of its hold so far, by its own history."""
        held = self._holders.now().get(self.node, frozenset()) >= self.keys
        return f"{self.node} held {', '.join(sorted(self.keys))}{'' if held else ' at first'}"

    async def until_another_is_in(self) -> None:
        """Or for as long as it may go on."""
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
    """Whoever is granted a lock next is kept while this lasts; None where nobody is, in time."""
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
