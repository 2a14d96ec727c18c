"""Faults without a schedule: begun and ended by the library's user."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lockcheck.agent.fleet import Fleet
from lockcheck.agent.link import Message, taking
from lockcheck.agent.orders import StrikeOrders, Struck
from lockcheck.errors import FaultError
from lockcheck.history import Effect, Event, EventType, Notice
from lockcheck.nemesis import step_of
from lockcheck.nemesis.aims import at_nodes
from lockcheck.nemesis.base import Plan, Step
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.course.under_way import UnderWay
from lockcheck.nemesis.network.links import Links
from lockcheck.nemesis.scene import Scene
from lockcheck.nemesis.triggers import Trigger

AIM_TIMEOUT_S = 10.0
AIM_POLL_S = 0.02

Send = Callable[[Message], None]


@dataclass(slots=True)
class FaultEvents:
    """Collects the events of a fault, to be waited for."""

    begun: Event | None = None
    proven: Event | None = None
    why_unproven: str = ""
    why_not_healed: str = ""
    decided: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, event: Event) -> None:
        error = event.error or ""
        if event.f == Notice.HEAL:
            if event.type is not EventType.INVOKE:
                self.why_not_healed = error
        elif event.type is EventType.INVOKE:
            self.begun = event
        else:
            self.proven = event if event.type is EventType.OK else None
            self.why_unproven = error
            self.decided.set()


@dataclass(frozen=True, slots=True)
class Active:
    nodes: tuple[str, ...]
    events: FaultEvents
    under_way: UnderWay
    running: asyncio.Task[None]


class FaultsByHand:
    def __init__(self, fleet: Fleet, workdir: Path, plan: Plan, send: Send) -> None:
        nodes = fleet.nodes
        self._scene = Scene(
            nodes,
            fleet,
            plan,
            Holders(workdir),
            Links(nodes),
            record=lambda event: send(Message(event=event)),
        )
        self._choices = random.Random(plan.seed)
        self._active: dict[int, Active] = {}
        self._cancelled: set[int] = set()
        self.requests = {
            "strike": taking(StrikeOrders, self._strike),
            "heal": taking(int, self._heal),
        }

    async def _strike(self, orders: StrikeOrders) -> Struck:
        """Replies once the fault is proven. If it cannot be proven, it is healed first."""
        step = step_of(orders.step)
        if orders.nodes:
            step = at_nodes(step, orders.nodes)
        step = step.drawn(self._choices)
        if lacking := step.kind.lacks(step):
            raise FaultError(f"{step} is not possible here: {lacking.reason}", cure=lacking.cure)
        nodes = await self._aim(step)
        if orders.number in self._cancelled:
            raise FaultError(f"{step} was cancelled before it took effect")
        self._refuse_twice(step, nodes)
        active = self._begin(orders.number, step, nodes)
        await active.events.decided.wait()
        events = active.events
        if events.begun is None or events.proven is None:
            await self._heal(orders.number)
            raise FaultError(f"{step} was not proven: {events.why_unproven}")
        return Struck(events.begun, events.proven)

    def _refuse_twice(self, step: Step, nodes: tuple[str, ...]) -> None:
        """The end of the one would be the end of the other. Cuts add up, link by link."""
        effect = step.kind.effect
        for each in self._active.values():
            other, both = each.under_way.step, [name for name in nodes if name in each.nodes]
            if both and effect is other.kind.effect and effect is not Effect.CUTS:
                raise FaultError(
                    f"{step} cannot strike {', '.join(both)} during {other}, which has the same "
                    "effect",
                    cure="end that block first, or name other nodes",
                )

    async def _aim(self, step: Step) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(AIM_TIMEOUT_S):
                while True:
                    if nodes := await step.aim.choose(self._scene, self._choices):
                        return nodes
                    await asyncio.sleep(AIM_POLL_S)
        except TimeoutError:
            raise FaultError(f"{step} found no node to strike in {AIM_TIMEOUT_S:g} s") from None

    def _begin(self, number: int, step: Step, nodes: tuple[str, ...]) -> Active:
        events = FaultEvents()
        under_way = UnderWay(
            step,
            nodes,
            trigger=Trigger.SCHEDULE,
            scene=self._scene,
            number=number,
            lasts_ms=None,
            now_ns=time.monotonic_ns,
            record=events.add,
        )
        self._active[number] = Active(
            nodes, events, under_way, asyncio.create_task(under_way.run())
        )
        self._scene.struck.update(nodes)
        return self._active[number]

    async def _heal(self, number: int) -> None:
        """Replies once it is healed; harmless if it never struck, or is healed already."""
        self._cancelled.add(number)
        if (active := self._active.get(number)) is None:
            return
        await active.under_way.end()
        self._active.pop(number, None)
        others = (name for each in self._active.values() for name in each.nodes)
        self._scene.struck -= {*active.nodes}.difference(others)
        if active.events.why_not_healed:
            raise FaultError(f"it was not healed: {active.events.why_not_healed}")

    async def finish(self) -> None:
        """Heals all at the same time: a restarted node may need nodes that are still struck."""
        healing = (active.under_way.end() for active in reversed(self._active.values()))
        await asyncio.gather(*healing)
