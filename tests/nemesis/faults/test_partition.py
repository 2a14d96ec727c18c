"""A cut is real, in each direction, for connections that exist and for new ones; and it heals."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lockcheck.errors import FaultError
from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.base import Strike
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.network.links import Link, Links
from lockcheck.nemesis.scene import Scene
from tests.nemesis.real import RealFleet, RealNode, astray, cluster

pytestmark = pytest.mark.cluster

Nodes = dict[str, RealNode]
PLAN = Plan(backend="made-up", ttl_ms=1000, time_limit_ms=15_000, clients=2, servers=2, stores=True)


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with cluster("r1", "r2", "s1", "c1", "c2") as nodes:
        yield nodes


@pytest.fixture
def scene(nodes: Nodes, tmp_path: Path) -> Scene:
    return Scene(nodes, RealFleet(nodes), PLAN, Holders(tmp_path), Links(nodes))


def partition(scene: Scene, words: str, *struck: str) -> Strike:
    (step,) = parse_nemesis(f"partition:{words}")
    return step.kind.strike(step, struck, scene)


async def inject_and_prove(strike: Strike) -> str:
    await strike.inject()
    return await strike.prove()


def connection(client: RealNode, server: RealNode) -> tuple[socket.socket, socket.socket]:
    with server.inside_network(), socket.create_server((server.address, 0)) as door:
        with client.inside_network():
            ours = socket.create_connection(door.getsockname(), timeout=5)
        theirs, _ = door.accept()
    return ours, theirs


def passes(sender: socket.socket, receiver: socket.socket, within_s: float) -> bool:
    receiver.settimeout(within_s)
    sender.sendall(b"x")
    with suppress(TimeoutError):
        return receiver.recv(100) != b""
    return False


def answer_to_a_new_connection(client: RealNode, server: RealNode) -> str:
    """At a port that is closed: a kernel that is reached refuses."""
    with client.inside_network():
        ours = socket.socket()
    with ours:
        ours.settimeout(0.15)
        try:
            ours.connect((server.address, 9))
        except OSError as error:
            return type(error).__name__
    return "connected"


def test_what_is_cut_is_silent_and_comes_back(nodes: Nodes, scene: Scene) -> None:
    ours, theirs = connection(nodes["c1"], nodes["r1"])
    other, others = connection(nodes["c2"], nodes["r1"])
    with ours, theirs, other, others:
        assert passes(ours, theirs, 5)
        strike = partition(scene, "client", "c1")
        asyncio.run(strike.inject())
        assert not passes(ours, theirs, 0.15)
        assert not passes(theirs, ours, 0.15)
        assert answer_to_a_new_connection(nodes["c1"], nodes["r2"]) == "TimeoutError"
        assert answer_to_a_new_connection(nodes["r2"], nodes["c1"]) == "TimeoutError"
        assert passes(other, others, 5)
        assert answer_to_a_new_connection(nodes["c1"], nodes["s1"]) == "ConnectionRefusedError"
        proof = asyncio.run(strike.prove())
        assert proof.startswith("4 links silent for 150 ms, and ")
        asyncio.run(strike.heal())
        assert answer_to_a_new_connection(nodes["c1"], nodes["r2"]) == "ConnectionRefusedError"
        ours.settimeout(10)
        assert ours.recv(100) == b"x"  # what was on its way comes after all
        assert passes(theirs, ours, 10)


def test_it_takes_effect_within_milliseconds(nodes: Nodes, scene: Scene) -> None:
    strike = partition(scene, "client", "c1")
    began = time.monotonic()
    asyncio.run(strike.inject())
    took_ms = (time.monotonic() - began) * 1000
    asyncio.run(strike.heal())
    assert took_ms < 1000  # 3 on a machine that has nothing else to do


async def inject_and_heal(strike: Strike) -> None:
    await strike.inject()
    await strike.heal()


@pytest.mark.parametrize(("way", "out", "into"), [("out", False, True), ("in", True, False)])
def test_one_way_only(nodes: Nodes, scene: Scene, way: str, out: bool, into: bool) -> None:
    ours, theirs = connection(nodes["c1"], nodes["r1"])
    with ours, theirs:
        strike = partition(scene, f"client,one-way={way}", "c1")
        assert asyncio.run(inject_and_prove(strike)).startswith("2 links silent")
        assert passes(ours, theirs, 0.5) is out
        assert passes(theirs, ours, 0.5) is into
        asyncio.run(strike.heal())


def test_nothing_but_its_own_entries_is_touched(nodes: Nodes, scene: Scene) -> None:
    strike = partition(scene, "client", "c1")
    asyncio.run(strike.inject())
    addresses = {name: node.address for name, node in nodes.items()}
    assert sorted(astray(nodes["c1"])) == sorted([addresses["r1"], addresses["r2"]])
    assert astray(nodes["r1"]) == astray(nodes["r2"]) == [addresses["c1"]]
    assert astray(nodes["s1"]) == astray(nodes["c2"]) == []
    asyncio.run(strike.heal())
    assert not any(astray(node) for node in nodes.values())


def test_what_two_cut_is_whole_when_both_are_healed(nodes: Nodes, scene: Scene) -> None:
    async def both() -> None:
        client, server = partition(scene, "client", "c1"), partition(scene, "server", "r1")
        await inject_and_prove(client)
        await inject_and_prove(server)
        await client.heal()
        assert answer_to_a_new_connection(nodes["c1"], nodes["r1"]) == "TimeoutError"
        assert answer_to_a_new_connection(nodes["c1"], nodes["r2"]) == "ConnectionRefusedError"
        await server.heal()
        assert answer_to_a_new_connection(nodes["c1"], nodes["r1"]) == "ConnectionRefusedError"

    asyncio.run(both())


def test_what_others_cut_already_proves_nothing(nodes: Nodes, scene: Scene) -> None:
    async def both() -> None:
        client, server = partition(scene, "client", "c1"), partition(scene, "server", "r1")
        await server.inject()
        await client.inject()
        assert (await client.prove()).startswith("2 links silent")  # with r2 alone
        again = partition(scene, "client", "c1")
        await again.inject()
        with pytest.raises(FaultError, match="other faults"):
            await again.prove()
        for strike in (again, client, server):
            await strike.heal()

    asyncio.run(both())


def test_a_cut_that_leaks_is_not_proven(nodes: Nodes, scene: Scene) -> None:
    strike = partition(scene, "client", "c1")
    asyncio.run(strike.inject())
    with nodes["c1"].inside_network():
        from pyroute2 import IPRoute

        with IPRoute() as network:
            (cable,) = network.link_lookup(ifname="eth0")
            network.neigh("del", dst=nodes["r2"].address, ifindex=cable)
    with pytest.raises(FaultError, match=r"packets still arrive: c1 to r2$"):
        asyncio.run(strike.prove())
    asyncio.run(strike.heal())  # an entry that is gone already is no obstacle


def test_a_link_that_never_worked_is_no_cut(nodes: Nodes, scene: Scene) -> None:
    plug(nodes["r2"], "down")
    strike = partition(scene, "client", "c1")
    with pytest.raises(FaultError, match=r"before anything was cut: c1 to r2, r2 to c1"):
        asyncio.run(strike.inject())
    asyncio.run(strike.heal())


def plug(node: RealNode, state: str) -> None:
    from pyroute2 import IPRoute

    with node.inside_network(), IPRoute() as network:
        (cable,) = network.link_lookup(ifname="eth0")
        network.link("set", index=cable, state=state)


def test_silence_of_everybody_is_no_proof(nodes: Nodes, scene: Scene) -> None:
    """What is not cut must go on: else it may be the whole network that fails."""
    strike = partition(scene, "client", "c1")
    asyncio.run(strike.inject())
    for node in nodes.values():
        plug(node, "down")
    with pytest.raises(FaultError, match="nothing arrived beside what was cut"):
        asyncio.run(strike.prove())
    for node in nodes.values():
        plug(node, "up")
    asyncio.run(strike.heal())


def test_healing_is_only_done_when_it_is_seen(
    nodes: Nodes, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    strike = partition(scene, "client", "c1")
    asyncio.run(strike.inject())
    plug(nodes["r2"], "down")
    with monkeypatch.context() as soon:
        soon.setattr("lockcheck.nemesis.faults.partition.HEALED_S", 0.1)
        with pytest.raises(FaultError, match=r"nothing arrived after healing: c1 to r2, r2 to c1"):
            asyncio.run(strike.heal())
    plug(nodes["r2"], "up")
    asyncio.run(strike.heal())


def test_stopped_and_ended_nodes_are_reached_all_the_same(nodes: Nodes, scene: Scene) -> None:
    """Another fault may hold them down: their network is there."""
    nodes["r1"].run()
    nodes["r1"].signal(19)
    strike = partition(scene, "client", "c1")
    asyncio.run(inject_and_prove(strike))
    assert astray(nodes["c1"])
    nodes["r1"].end()
    asyncio.run(strike.heal())
    assert not astray(nodes["c1"])


def test_healing_is_harmless_twice_and_in_vain(nodes: Nodes, scene: Scene) -> None:
    strike = partition(scene, "client", "c1")
    asyncio.run(strike.heal())
    asyncio.run(strike.inject())
    assert astray(nodes["c1"])
    for _ in range(2):
        asyncio.run(strike.heal())
        assert not astray(nodes["c1"])


def test_a_network_that_fails_keeps_no_other_from_being_mended(nodes: Nodes) -> None:
    links = Links(nodes)
    links.cut([Link("c1", "r1"), Link("c2", "r1"), Link("s1", "r1")], "me")
    network = nodes["c2"].network
    nodes["c2"].network = -1
    with pytest.raises(FaultError, match="c2: "):
        links.mend("me")
    assert not astray(nodes["c1"])
    assert not astray(nodes["s1"])
    nodes["c2"].network = network
    assert astray(nodes["c2"])
    links.mend("me")
    assert not astray(nodes["c2"])


SHAPES = {"majorities-ring": ("r1", "r2", "r3"), "bridge": ("r1", "c1")}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_what_it_cuts_and_what_it_leaves(shape: str, tmp_path: Path) -> None:
    """Of three servers, r2 sees both others in either."""
    with cluster("r1", "r2", "r3", "c1", "c2") as nodes:
        scene = Scene(nodes, RealFleet(nodes), PLAN, Holders(tmp_path), Links(nodes))
        strike = partition(scene, shape, *SHAPES[shape])
        proof = asyncio.run(inject_and_prove(strike))
        silent, beside = (int(word) for word in re.findall(r"(\d+) links", proof))
        assert silent + beside == 3 * 2 + 3 * 2 * 2  # between servers, and with clients
        for one, other in (("r1", "r3"), ("r3", "r1")):
            assert answer_to_a_new_connection(nodes[one], nodes[other]) == "TimeoutError"
        for one, other in (("r1", "r2"), ("r2", "r3")):
            assert answer_to_a_new_connection(nodes[one], nodes[other]) == "ConnectionRefusedError"
        plug(nodes["r2"], "down")
        with pytest.raises(FaultError, match=r"nothing arrived beside what was cut: .*r2"):
            asyncio.run(strike.prove())
        plug(nodes["r2"], "up")
        asyncio.run(strike.heal())


def test_the_host_is_left_alone(nodes: Nodes, scene: Scene) -> None:
    before = Path("/proc/thread-self/ns/net").stat().st_ino
    asyncio.run(inject_and_heal(partition(scene, "client", "c1")))
    assert Path("/proc/thread-self/ns/net").stat().st_ino == before
