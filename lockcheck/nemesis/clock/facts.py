"""Records in the history how far the clocks of nodes were off."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack, suppress

from lockcheck.errors import FaultError
from lockcheck.history import Event, EventType, Notice
from lockcheck.history.event import NS_PER_MS, RUN
from lockcheck.nemesis.clock.engines import Clocks, VdsoClocks
from lockcheck.nemesis.clock.skew import CLOCKS
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Role

EVERY_S = 0.1


class ClockFacts:
    """Records struck clocks every `EVERY_S`, and all clocks at the beginning and at the end."""

    def __init__(self, scene: Scene, struck: Mapping[str, Clocks]) -> None:
        self._scene = scene
        self._struck = struck
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait((self._watching,))

    async def note_all(self) -> None:
        """Records all clocks. Call it only while none is moved: before and after the fault."""
        names = self._scene.names(Role.SERVER, Role.CLIENT)
        with ExitStack() as stack:
            clocks = {name: VdsoClocks(self._scene.nodes[name]) for name in names}
            for each in clocks.values():
                stack.callback(each.close)
            await self._note(clocks)

    async def _note(self, clocks: Mapping[str, Clocks]) -> None:
        read = {name: await _offsets_ms(each) for name, each in clocks.items()}
        if found := {name: offsets for name, offsets in read.items() if offsets}:
            now_ns = self._scene.now_ns()  # after reading them, which takes a while
            self._scene.record(
                Event(time=now_ns, process=RUN, type=EventType.INFO, f=Notice.CLOCKS, value=found)
            )

    async def _watch(self) -> None:
        while True:
            await self._note(self._struck)
            await asyncio.sleep(EVERY_S)


async def _offsets_ms(clocks: Clocks) -> list[float | None]:
    """Wall and monotonic, of the process furthest off. Empty if they cannot be read just now."""
    with suppress(FaultError, OSError):
        all_ns = [await clocks.offsets_ns(clock) for clock in CLOCKS]
        furthest = [round(max(each, key=abs) / NS_PER_MS, 1) if each else None for each in all_ns]
        return furthest if any(all_ns) else []
    return []
