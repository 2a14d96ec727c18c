"""Which nodes each aim chooses: so many, of that role, none of them struck or down already."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from lockcheck.nemesis import Plan, aims
from lockcheck.nemesis.base import Aim
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.network.links import Links
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Node, Role
from tests.nemesis.made_up import PaperFleet, PaperNode

ROLES = {"r": Role.SERVER, "s": Role.STORAGE, "c": Role.CLIENT}
SERVERS = tuple(f"r{number}" for number in range(1, 6))
CLIENTS = ("c1", "c2", "c3", "c4")


def chosen(aim: Aim, *, struck: str = "", down: str = "", leading: str | None = None) -> list[str]:
    nodes: dict[str, Node] = {n: PaperNode(n, ROLES[n[0]]) for n in (*SERVERS, "s1", *CLIENTS)}
    for name in down.split():
        nodes[name].down = True
    plan = Plan(backend="b", ttl_ms=1000, time_limit_ms=15_000, clients=4, servers=5)
    scene = Scene(nodes, PaperFleet(leading), plan, Holders(Path()), Links(nodes))
    scene.struck.update(struck.split())

    async def choose(seed: int) -> tuple[str, ...]:
        return await aim.choose(scene, random.Random(seed))

    found = {asyncio.run(choose(seed)) for seed in range(60)}
    return sorted("+".join(names) for names in found)


@pytest.mark.parametrize(
    ("aim", "struck", "down", "expected"),
    [
        (aims.CLIENT, "", "", [*CLIENTS]),
        (aims.CLIENT, "c1", "c2", ["c3", "c4"]),
        (aims.CLIENT, "c1 c2 c3 c4", "", [""]),
        (aims.SERVER, "", "", [*SERVERS]),
        (aims.SERVER, "r1 r2", "r3", ["r4", "r5"]),
        (aims.RANDOM, "r1 r2 r3 r4", "c2 c3", ["c1", "c4", "r5"]),
        (aims.MINORITY, "r1 r2", "r3", ["r4+r5"]),
        (aims.MINORITY, "r1 r2 r3 r4", "", [""]),
        (aims.MAJORITY, "r1 r2", "", ["r3+r4+r5"]),
        (aims.MAJORITY, "r1 r2 r3", "", [""]),
        (aims.HALVES, "r1 r2 r3 c1 c2", "", ["r4+r5+c3+c4"]),
        (aims.HALVES, "r1 r2 r3 r4", "", [""]),
        (aims.HALVES, "c1 c2 c3", "", [""]),
        (aims.NODE, "r1 r2 r3 r4 c1", "c2 c3", ["c4", "r5", "s1"]),
        (aims.BRIDGE, "r1 r2 r3 c1 c2", "", ["r4+r5+c3+c4"]),
        (aims.BRIDGE, "r1 r2 r3 r4", "", [""]),
        (aims.MAJORITIES_RING, "r1", "", [""]),
        (aims.MAJORITIES_RING, "", "r5", [""]),
    ],
)
def test_who_is_chosen(aim: Aim, struck: str, down: str, expected: list[str]) -> None:
    assert chosen(aim, struck=struck, down=down) == expected


def test_the_leader_unless_it_is_struck_already() -> None:
    assert chosen(aims.LEADER, leading="r2") == ["r2"]
    assert chosen(aims.LEADER) == [""]
    assert chosen(aims.LEADER, leading="r2", struck="r2") == [""]
    assert chosen(aims.LEADER, leading="r2", down="r2") == [""]


def test_a_ring_is_every_server_in_some_order() -> None:
    rings = chosen(aims.MAJORITIES_RING, struck="c1 c2")
    assert len(rings) > 10
    assert {tuple(sorted(ring.split("+"))) for ring in rings} == {SERVERS}
