"""Which links a cut goes through: between two sides, around a ring, on both sides of a bridge."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.base import Step
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.network.links import Links
from lockcheck.nemesis.network.sides import links_to_cut, links_to_leave
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Node, Role
from tests.nemesis.made_up import PaperFleet, PaperNode

ROLES = {"r": Role.SERVER, "s": Role.STORAGE, "c": Role.CLIENT}
Pairs = set[tuple[str, str]]


def scene_of(names: Iterable[str]) -> Scene:
    nodes: dict[str, Node] = {name: PaperNode(name, ROLES[name[0]]) for name in names}
    plan = Plan(backend="b", ttl_ms=1000, time_limit_ms=15_000, clients=2, servers=2)
    return Scene(nodes, PaperFleet(), plan, Holders(Path()), Links(nodes))


def step(words: str) -> Step:
    (step,) = parse_nemesis(f"partition:{words}")
    return step


def cut(words: str, struck: tuple[str, ...], scene: Scene) -> Pairs:
    return {(a.sender, a.receiver) for a in links_to_cut(step(words), struck, scene)}


def both_ways(*pairs: str) -> Pairs:
    of_it = [tuple(pair.split("-")) for pair in pairs]
    return {(a, b) for a, b in of_it} | {(b, a) for a, b in of_it}


SERVERS_C1 = both_ways("c1-r1", "c1-r2")
STORAGE_C1 = both_ways("c1-s1")
R1_PEERS = both_ways("r1-r2")
R1_CLIENTS = both_ways("r1-c1", "r1-c2")


@pytest.mark.parametrize(
    ("words", "struck", "expected"),
    [
        ("client", ("c1",), SERVERS_C1),
        ("client,from=servers", ("c1",), SERVERS_C1),
        ("client,from=storage", ("c1",), STORAGE_C1),
        ("client,from=all", ("c1",), SERVERS_C1 | STORAGE_C1),
        ("client,from=clients", ("c1",), set()),
        ("client,one-way=out", ("c1",), {("c1", "r1"), ("c1", "r2")}),
        ("client,one-way=in", ("c1",), {("r1", "c1"), ("r2", "c1")}),
        ("server", ("r1",), R1_PEERS | R1_CLIENTS),
        ("server,from=servers", ("r1",), R1_PEERS),
        ("server,from=servers,one-way=in", ("r1",), {("r2", "r1")}),
        ("server,from=clients", ("r1",), R1_CLIENTS),
        ("node", ("s1",), both_ways("s1-r1", "s1-r2", "s1-c1", "s1-c2")),
        ("majority", ("r1", "r2"), R1_CLIENTS | both_ways("r2-c1", "r2-c2")),
        ("halves", ("r1", "c1"), both_ways("r1-r2", "r1-c2", "c1-r2")),
        ("halves,one-way=out", ("r1", "c1"), {("r1", "r2"), ("r1", "c2"), ("c1", "r2")}),
    ],
)
def test_between_two_sides(words: str, struck: tuple[str, ...], expected: Pairs) -> None:
    assert cut(words, struck, scene_of(("r1", "r2", "s1", "c1", "c2"))) == expected


FIVE = scene_of(("r1", "r2", "r3", "r4", "r5", "s1", "c1", "c2"))
ACROSS = both_ways("r1-r4", "r1-r5", "r2-r4", "r2-r5")
ACROSS_CLIENTS = both_ways("r1-c2", "r2-c2", "c1-r4", "c1-r5")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("bridge", ACROSS | ACROSS_CLIENTS),  # r3 sees both
        ("bridge,from=servers", ACROSS | both_ways("c1-r4", "c1-r5")),
        ("bridge,one-way=out", {p for p in ACROSS | ACROSS_CLIENTS if p[0] in ("r1", "r2", "c1")}),
    ],
)
def test_a_bridge(words: str, expected: Pairs) -> None:
    assert cut(words, ("r1", "r2", "c1"), FIVE) == expected


RING = ("r3", "r1", "r5", "r2", "r4")
NOT_NEIGHBOURS = both_ways("r3-r5", "r3-r2", "r1-r2", "r1-r4", "r5-r4")
# c1 sees what r3 sees, c2 what r1 sees.
CLIENTS_OF_RING = both_ways("c1-r5", "c1-r2", "c2-r2", "c2-r4")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("majorities-ring", NOT_NEIGHBOURS | CLIENTS_OF_RING),
        ("majorities-ring,from=servers", NOT_NEIGHBOURS),
        ("majorities-ring,from=clients", CLIENTS_OF_RING),
    ],
)
def test_a_ring(words: str, expected: Pairs) -> None:
    assert cut(words, RING, FIVE) == expected


@pytest.mark.parametrize("number", range(3, 10))
def test_in_a_ring_every_server_sees_a_majority_and_no_two_the_same(number: int) -> None:
    servers = [f"r{n}" for n in range(1, number + 1)]
    scene = scene_of([*servers, *(f"c{n}" for n in range(1, 8))])

    async def choose() -> tuple[str, ...]:
        return await step("majorities-ring").aim.choose(scene, random.Random(1))

    ring = asyncio.run(choose())
    lost = cut("majorities-ring", ring, scene)
    assert lost == {(b, a) for a, b in lost}
    seen = {name: frozenset({*servers} - {b for a, b in lost if a == name}) for name in scene.nodes}
    assert all(len(each) > number / 2 for each in seen.values())
    assert len({seen[name] for name in servers}) == number
    assert all(name in seen[name] for name in servers)
    assert {seen[name] for name in scene.names(Role.CLIENT)} <= {seen[name] for name in servers}


@pytest.mark.parametrize(
    ("words", "struck"), [("bridge", ("r1", "r2", "c1")), ("majorities-ring", RING)]
)
def test_what_a_shape_leaves_is_a_part_of_it(words: str, struck: tuple[str, ...]) -> None:
    left = {(a.sender, a.receiver) for a in links_to_leave(step(words), struck, FIVE)}
    lost = cut(words, struck, FIVE)
    servers, clients = FIVE.names(Role.SERVER), FIVE.names(Role.CLIENT)
    between = {(a, b) for a in servers for b in servers if a != b}
    between |= {pair for a in servers for b in clients for pair in ((a, b), (b, a))}
    assert left | lost == between
    assert not left & lost
    assert links_to_leave(step("halves"), ("r1", "r2", "c1"), FIVE) == ()
