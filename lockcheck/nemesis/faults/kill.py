"""SIGKILL to all processes of a node, which is restarted later with or without its data.

Several nodes go down at once, or `rolling`: in turn, while a client is kept from releasing a lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from lockcheck.errors import FaultError
from lockcheck.history import Effect
from lockcheck.nemesis.aims import ALL, CLIENT, HOLDER, LEADER, MAJORITY, MINORITY, RANDOM, SERVER
from lockcheck.nemesis.base import (
    FaultKind,
    Fleet,
    Plan,
    Refusal,
    Step,
    Strike,
    each_of,
    outlasting_the_lease,
)
from lockcheck.nemesis.course.held_lock import a_held_lock
from lockcheck.nemesis.parameters import FOR, duration, flag
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Node

NEVER = "never"
RESTART = duration("restart", "when it is started again", or_word=NEVER)
NO_DATA = flag("no-data", "it comes back without its data")
ROLLING = flag("rolling", "one after the other, each up again before the next goes down")
LONGEST_ROLLING_MS = 15_000  # in all: less than the time limit for a fault to take effect
SEVERAL = (MAJORITY, MINORITY, ALL)


class Kill:
    def __init__(self, nodes: Iterable[Node], fleet: Fleet, *, data: bool, restart: bool) -> None:
        self._nodes = tuple(nodes)
        self._fleet = fleet
        self._data = data
        self._restart = restart
        self._processes = 0  # before the kill
        self._down: set[str] = set()  # killed and not restarted yet

    async def inject(self) -> None:
        self._processes = sum(len(node.pids()) for node in self._nodes)
        if gone := [node.name for node in self._nodes if not node.alive]:
            raise FaultError(f"{', '.join(gone)} had no process to kill")
        await each_of(self._end(node) for node in self._nodes)

    async def _end(self, node: Node) -> None:
        self._down.add(node.name)
        await self._fleet.end(node.name)

    async def prove(self) -> str:
        left = {node.name: node.pids() for node in self._nodes if node.alive}
        if left:
            raise FaultError(f"processes are still alive: {left}")
        were = "1 process was" if self._processes == 1 else f"{self._processes} processes were"
        return f"{were} killed, and none is left"

    async def heal(self) -> None:
        if self._restart:
            await each_of(self._start(node) for node in self._nodes if node.name in self._down)

    async def _start(self, node: Node) -> None:
        if node.alive:  # started by an earlier attempt, or never killed
            await self._fleet.end(node.name)
        await self._fleet.start(node.name, data=self._data)
        self._down.discard(node.name)


class Rolling:
    """Restarts the nodes in turn during `inject`; `heal` restarts those that did not come up."""

    def __init__(self, nodes: Iterable[Node], scene: Scene, *, data: bool, down_ms: int) -> None:
        self._turns = {node: Kill([node], scene.fleet, data=data, restart=True) for node in nodes}
        self._scene = scene
        self._down_s = down_ms / 1000
        self._took: list[str] = []
        self._held = ""

    async def inject(self) -> int:
        async with a_held_lock(self._scene) as held:
            before_ns = self._scene.now_ns()
            for node, kill in self._turns.items():
                await self._restart(node, kill)
            if held is not None:
                self._held = f"; {held.words()}"
                await held.until_granted_to_another()
            return before_ns

    async def _restart(self, node: Node, kill: Kill) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await kill.inject()
        await kill.prove()
        await asyncio.sleep(self._down_s)
        await kill.heal()
        self._took.append(f"{node.name} {(loop.time() - began) * 1000:.0f} ms")

    async def prove(self) -> str:
        if gone := [node.name for node in self._turns if not node.alive]:
            raise FaultError(f"not up again: {', '.join(gone)}")
        return f"each was gone, and up again before the next: {', '.join(self._took)}{self._held}"

    async def heal(self) -> None:
        for kill in self._turns.values():
            await kill.heal()


def _strike(step: Step, nodes: tuple[str, ...], scene: Scene) -> Strike:
    struck = [scene.nodes[name] for name in nodes]
    data = not step.setting(NO_DATA.name)
    if step.setting(ROLLING.name):
        down_ms = step.duration_ms(RESTART.name) or 0
        return Rolling(struck, scene, data=data, down_ms=down_ms)
    return Kill(struck, scene.fleet, data=data, restart=step.setting(RESTART.name) != NEVER)


def _lasts_ms(step: Step, plan: Plan) -> int | None:
    if step.setting(RESTART.name) == NEVER:
        return None
    if step.setting(ROLLING.name):
        return 0  # it is over as soon as it has taken effect
    return step.duration_ms(RESTART.name) or outlasting_the_lease(step, plan)


def _why_not(step: Step, plan: Plan) -> Refusal | None:
    if step.setting(ROLLING.name):
        return _why_not_rolling(step, plan) or _why_not_without_data(step, plan)
    if step.setting(RESTART.name) is not None and step.for_ms is not None:
        return Refusal(f"{RESTART.name} and {FOR.name} mean the same", f"leave out {FOR.name}")
    if step.setting(RESTART.name) == NEVER and step.setting(NO_DATA.name):
        return Refusal(
            f"a node that never restarts needs no {NO_DATA.name}", f"leave out {NO_DATA.name}"
        )
    return _why_not_without_data(step, plan)


def _why_not_rolling(step: Step, plan: Plan) -> Refusal | None:
    if step.aim not in SEVERAL:
        aims = ", ".join(aim.name for aim in SEVERAL)
        return Refusal(
            f"{step.aim.name} is a single node, so there are no turns", f"aim at one of: {aims}"
        )
    if step.setting(RESTART.name) == NEVER:
        return Refusal(
            f"{ROLLING.name} always restarts one server before stopping the next",
            f"leave out {RESTART.name}",
        )
    if step.for_ms is not None:
        return Refusal(
            f"{ROLLING.name} lasts until the last server is up",
            f"{RESTART.name}= is how long each one is down",
        )
    if plan.servers * (step.duration_ms(RESTART.name) or 0) > LONGEST_ROLLING_MS:
        return Refusal("one after the other, that takes too long", f"a shorter {RESTART.name}=")
    return None


def _why_not_without_data(step: Step, plan: Plan) -> Refusal | None:
    refusing = [kind.server for kind in plan.kinds if kind.server.refused_without_data]
    if step.setting(NO_DATA.name) and refusing and step.aim not in (HOLDER, CLIENT):
        return Refusal(
            f"a member of {refusing[0].title} that has lost its data is not accepted by the others",
            f"leave out {NO_DATA.name}",
        )
    return None


KIND = FaultKind(
    name="kill",
    summary="SIGKILL, and a restart later",
    effect=Effect.ENDS,
    aims=(SERVER, HOLDER, CLIENT, LEADER, RANDOM, MINORITY, MAJORITY, ALL),
    strike=_strike,
    parameters=(RESTART, NO_DATA, ROLLING),
    variants=("", f"{RESTART.name}=300ms"),  # longer and shorter than the usual lease
    lasts_ms=_lasts_ms,
    why_not=_why_not,
)
