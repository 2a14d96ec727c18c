"""Links are cut one by one, all of them, and come back one by one, in orders of the seed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.base import Step
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.network.links import Link, Links
from lockcheck.nemesis.scene import Scene
from tests.nemesis.network.test_sides import scene_of
from tests.nemesis.real import RealFleet, RealNode, astray, cluster

STRUCK = ("r1", "c1")


def step(words: str) -> Step:
    (step,) = parse_nemesis(f"swizzle:{words}")
    return step


def order(seed: int, struck: tuple[str, ...] = STRUCK) -> tuple[Link, ...]:
    scene = scene_of(("r1", "r2", "c1", "c2"))
    scene = replace(scene, plan=replace(scene.plan, seed=seed))
    halves = step("halves")
    return halves.kind.links(halves, struck, scene)


def test_the_order_is_the_seeds() -> None:
    assert order(1) == order(1)
    assert sorted(order(1)) == sorted(order(2))
    assert len({order(seed) for seed in range(10)}) > 5


class Watched(Links):
    """Notes how many links are cut after each change."""

    def __init__(self, nodes: dict[str, RealNode]) -> None:
        super().__init__(nodes)
        self.steps: list[list[Link]] = []
        self.times_ns: list[int] = []

    def _apply(self) -> None:
        super()._apply()
        self.steps.append(sorted(self._cut))
        self.times_ns.append(time.monotonic_ns())


@pytest.mark.cluster
def test_one_by_one_until_all_are_cut_and_back(tmp_path: Path) -> None:
    halves = step("halves,every=5ms")
    plan = Plan(backend="b", ttl_ms=1000, time_limit_ms=15_000, clients=2, servers=2, seed=3)
    with cluster("r1", "r2", "s1", "c1", "c2") as nodes:
        links = Watched(nodes)
        scene = Scene(nodes, RealFleet(nodes), plan, Holders(tmp_path), links)
        strike = halves.kind.strike(halves, STRUCK, scene)
        began_ns = time.monotonic_ns()

        async def inject_and_prove() -> str:
            since_ns = await strike.inject()
            assert began_ns <= (since_ns or 0) <= links.times_ns[0]
            return await strike.prove()

        proof = asyncio.run(inject_and_prove())
        assert proof.startswith("6 links silent for 150 ms, and ")
        asyncio.run(strike.heal())
        assert not any(astray(node) for node in nodes.values())
    counts = [len(cut) for cut in links.steps]
    assert counts[:12] == [1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 0]
    went = halves.kind.links(halves, STRUCK, scene)
    assert [sorted(went[:number]) for number in range(1, 7)] == links.steps[:6]
    came = [
        (set(a) - set(b)).pop() for a, b in zip(links.steps[5:], links.steps[6:12], strict=False)
    ]
    assert sorted(came) == sorted(went)
    assert tuple(came) not in (went, went[::-1])
