"""Cuts links one by one in a random order, and mends them one by one in another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random

from lockcheck.durations import duration_words
from lockcheck.history import Effect
from lockcheck.nemesis.aims import HALVES
from lockcheck.nemesis.base import FaultKind, Plan, Refusal, Step
from lockcheck.nemesis.faults.partition import AIMS, Partition
from lockcheck.nemesis.network.links import Link
from lockcheck.nemesis.network.sides import FROM, ONE_WAY, links_to_cut, links_to_leave, why_not
from lockcheck.nemesis.parameters import duration
from lockcheck.nemesis.scene import Scene

EVERY = duration("every", "the time from one link to the next", default=20)
LONGEST_MS = 10_000  # until all are cut: there is a time limit for a fault to take effect


class Swizzle(Partition):
    def __init__(
        self,
        nodes: tuple[str, ...],
        links: Iterable[Link],  # in the order in which they are cut
        scene: Scene,
        *,
        leave: Iterable[Link],
        back: Iterable[Link],  # in the order in which they come back
        every_s: float,
    ) -> None:
        super().__init__(nodes, links, scene, leave)
        self._back = tuple(back)
        self._every_s = every_s
        self._cut: set[Link] = set()

    async def _cut_links(self) -> None:
        for link in self._wanted:
            self._cut.add(link)
            self._scene.links.cut((link,), self)
            await asyncio.sleep(self._every_s)

    async def heal(self) -> None:
        for link in self._back:
            if link in self._cut:
                self._scene.links.mend(self, (link,))
                self._cut.discard(link)
                await asyncio.sleep(self._every_s)
        await super().heal()


def _in_order(step: Step, nodes: tuple[str, ...], scene: Scene) -> tuple[Link, ...]:
    return _shuffled("cut", step, nodes, scene)


def _shuffled(what: str, step: Step, nodes: tuple[str, ...], scene: Scene) -> tuple[Link, ...]:
    """The links in an order that depends on the seed, the step, the nodes and `what` alone."""
    links = list(links_to_cut(step, nodes, scene))
    Random(f"{scene.plan.seed}/{step}/{'/'.join(nodes)}/{what}").shuffle(links)
    return tuple(links)


def _strike(step: Step, nodes: tuple[str, ...], scene: Scene) -> Swizzle:
    return Swizzle(
        nodes,
        _in_order(step, nodes, scene),
        scene,
        leave=links_to_leave(step, nodes, scene),
        back=_shuffled("back", step, nodes, scene),
        every_s=(step.duration_ms(EVERY.name) or 0) / 1000,
    )


def _too_slow(step: Step, plan: Plan) -> Refusal | None:
    nodes = plan.servers + plan.clients + plan.stores
    most = nodes * (nodes - 1)
    if most * (step.duration_ms(EVERY.name) or 0) <= LONGEST_MS:
        return None
    return Refusal(
        f"there may be {most} links to cut, which must not take over {duration_words(LONGEST_MS)}",
        f"{EVERY.name}={duration_words(max(1, LONGEST_MS // most))}",
    )


KIND = FaultKind(
    name="swizzle",
    summary="links are cut one by one in a random order, and come back in another",
    effect=Effect.CUTS,
    aims=(HALVES, *(aim for aim in AIMS if aim is not HALVES)),
    strike=_strike,
    links=_in_order,
    parameters=(FROM, ONE_WAY, EVERY),
    why_not=lambda step, plan: why_not(step, plan) or _too_slow(step, plan),
    needs="networks of the run's own, which both runtimes have",
)
