"""What a node sends is slow, in each of the ways, as packets of ours see it; and then it is not."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from lockcheck.errors import FaultError
from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.base import Refusal, Step, Strike
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.faults import slow as kind
from lockcheck.nemesis.faults.slow import KIND
from lockcheck.nemesis.network.links import Link, Links
from lockcheck.nemesis.network.slowness import Delay, PacketLoss, Rate, Seen, Slowness
from lockcheck.nemesis.scene import Scene
from tests.nemesis.real import RealFleet, RealNode, cluster

Nodes = dict[str, RealNode]
PLAN = Plan(backend="made-up", ttl_ms=1000, time_limit_ms=15_000, clients=2, servers=1)
WAYS = ("rate=8kbit", "rate=1mbit", "rate=10mbit", "loss=30", "loss=5", "loss=90", "delay=100ms")


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with cluster("r1", "c1", "c2") as nodes:
        yield nodes
        assert not any(map(traces, nodes.values())), "something slow was left behind"


@pytest.fixture
def scene(nodes: Nodes, tmp_path: Path) -> Scene:
    return Scene(nodes, RealFleet(nodes), PLAN, Holders(tmp_path), Links(nodes))


def traces(node: RealNode) -> list[str]:
    """Queues and tables, as another tool sees them."""
    from pyroute2 import IPRoute

    with node.inside_network(), IPRoute() as network:
        (cable,) = network.link_lookup(ifname="eth0")
        kinds = (queue.get_attr("TCA_KIND") for queue in network.get_qdiscs(index=cable))
        queues = [str(kind) for kind in kinds if kind != "noqueue"]
    return queues + tables(node)


def tables(node: RealNode) -> list[str]:
    from pyroute2.nftables.main import NFTables

    with node.inside_network(), NFTables(nfgen_family=2) as rules:
        return [str(table.get_attr("NFTA_TABLE_NAME")) for table in rules.get_tables()]


def step(words: str) -> Step:
    (step,) = parse_nemesis(f"slow:{words}")
    return step


def slow(scene: Scene, words: str, *struck: str) -> Strike:
    made = step(words)
    if refusal := made.kind.lacks(made):
        pytest.skip(f"{refusal.reason}: {refusal.cure}")
    return made.kind.strike(made, struck, scene)


async def inject_and_prove(strike: Strike) -> str:
    await strike.inject()
    return await strike.prove()


def arrive(
    sender: RealNode, receiver: RealNode, packets: int, size: int, within_s: float = 2
) -> list[float]:
    """How long after they were sent, all at once, those came that came in time."""
    with receiver.inside_network():
        door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender.inside_network():
        ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    came: list[float] = []
    with door, ours, suppress(TimeoutError):
        door.bind((receiver.address, 0))
        began = time.monotonic()
        for _ in range(packets):
            ours.sendto(bytes(size - 42), door.getsockname())
        while len(came) < packets:
            door.settimeout(max(0.001, began + within_s - time.monotonic()))
            door.recv(1)
            came.append(time.monotonic() - began)
    return came


@pytest.mark.cluster
@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_proven_and_healed(nodes: Nodes, scene: Scene, way: str) -> None:
    strike = slow(scene, f"client,{way}", "c1")
    proof = asyncio.run(inject_and_prove(strike))
    assert " from c1, and before " in proof
    asyncio.run(strike.heal())
    asyncio.run(strike.heal())
    assert not traces(nodes["c1"])


@pytest.mark.cluster
def test_a_rate_is_that_of_all_it_sends_and_of_nobody_else(nodes: Nodes, scene: Scene) -> None:
    strike = slow(scene, "client", "c1")
    asyncio.run(strike.inject())
    assert traces(nodes["c1"]) == ["tbf"]
    # 1514 bytes may pass at once, and 1000 a second after that.
    took = arrive(nodes["c1"], nodes["r1"], 20, 100)
    assert len(took) == 20
    assert max(took) > 0.4
    assert max(arrive(nodes["r1"], nodes["c1"], 20, 100)) < 0.4
    assert max(arrive(nodes["c2"], nodes["r1"], 20, 100)) < 0.4
    asyncio.run(strike.heal())
    assert max(arrive(nodes["c1"], nodes["r1"], 20, 100)) < 0.4


@pytest.mark.cluster
def test_a_queue_that_is_full_of_others_is_slow_and_no_cut(nodes: Nodes, scene: Scene) -> None:
    strike = slow(scene, "client", "c1")

    async def flood(full: asyncio.Event) -> None:
        with nodes["c1"].inside_network():
            ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with ours:
            ours.setblocking(False)
            for number in count():
                with suppress(BlockingIOError):
                    ours.sendto(bytes(58), (nodes["c2"].address, 9))
                if number == 100:
                    full.set()
                await asyncio.sleep(0.001)

    async def flooded() -> None:
        await strike.inject()
        full = asyncio.Event()
        flooding = asyncio.create_task(flood(full))
        await full.wait()
        assert " from c1, and before 18 of 18 packets" in await strike.prove()
        flooding.cancel()
        await strike.heal()

    asyncio.run(flooded())


@pytest.mark.cluster
def test_losses_are_random_and_one_senders_alone(nodes: Nodes, scene: Scene) -> None:
    strike = slow(scene, "client,loss=50", "c1")
    asyncio.run(strike.inject())
    assert tables(nodes["r1"]) == tables(nodes["c2"]) == ["lockcheck-c1"]
    came = sum(len(arrive(nodes["c1"], nodes["r1"], 100, 100, 0.5)) for _ in range(2))
    assert 60 < came < 140
    assert len(arrive(nodes["r1"], nodes["c1"], 100, 100)) == 100
    assert len(arrive(nodes["c2"], nodes["r1"], 100, 100)) == 100
    asyncio.run(strike.heal())
    assert len(arrive(nodes["c1"], nodes["r1"], 100, 100)) == 100


@pytest.mark.cluster
def test_two_may_lose_packets_at_once(nodes: Nodes, scene: Scene) -> None:
    first, second = slow(scene, "loss=50", "c1"), slow(scene, "loss=50", "c2")

    for strike in (first, second):
        asyncio.run(inject_and_prove(strike))
    asyncio.run(first.heal())
    assert tables(nodes["r1"]) == ["lockcheck-c2"]
    asyncio.run(second.heal())


@pytest.mark.cluster
@pytest.mark.parametrize("way", ["rate=8kbit", "loss=30"])
def test_what_was_taken_off_meanwhile_is_not_proven(nodes: Nodes, scene: Scene, way: str) -> None:
    strike = slow(scene, f"client,{way}", "c1")

    async def taken_off() -> None:
        await strike.inject()
        for slowness in (Rate(1000), PacketLoss(30)):
            slowness.remove(nodes["c1"], [nodes["r1"], nodes["c2"]])
        with pytest.raises(FaultError, match="could not confirm that c1's link is slow"):
            await strike.prove()
        await strike.heal()

    asyncio.run(taken_off())


@pytest.mark.cluster
def test_who_is_cut_off_proves_nothing_and_is_healed_all_the_same(
    nodes: Nodes, scene: Scene
) -> None:
    strike = slow(scene, "client", "c1")

    async def cut_off() -> None:
        await strike.inject()
        scene.links.cut([Link("c1", "r1")], "another fault")
        assert " from c1, and before " in await strike.prove()  # by way of c2
        scene.links.cut([Link("c1", "c2")], "another fault")
        with pytest.raises(FaultError, match="cut c1 off from all other nodes"):
            await strike.prove()
        await strike.heal()
        scene.links.mend("another fault")

    asyncio.run(cut_off())


@pytest.mark.cluster
def test_a_cut_is_proven_beside_it(nodes: Nodes, scene: Scene) -> None:
    """By links that are not slow: over a slow one, silence would tell nothing."""
    (words,) = parse_nemesis("partition:server")
    cut, strike = words.kind.strike(words, ("r1",), scene), slow(scene, "client", "c1")

    async def both() -> None:
        await inject_and_prove(strike)
        assert (await inject_and_prove(cut)).startswith("3 links silent")  # of four
        await cut.heal()
        await strike.heal()

    asyncio.run(both())


@pytest.mark.cluster
def test_healing_is_harmless_in_vain(nodes: Nodes, scene: Scene) -> None:
    asyncio.run(slow(scene, "client", "c1").heal())
    assert not traces(nodes["c1"])


def seen(packets: int, *took_s: float) -> Seen:
    return Seen(packets, took_s)


@pytest.mark.parametrize(
    ("slowness", "looks", "there", "gone"),
    [
        (Rate(1000), seen(18, 0.0, 0.3), True, False),
        (Rate(1000), seen(2, 0.0, 0.3), True, False),
        (Rate(1000), seen(2, 0.0, 0.001), False, True),
        (Rate(1000), seen(2, 0.0, 0.15), False, False),
        (Rate(1000), seen(18), False, False),  # a cut
        (PacketLoss(20), seen(100, *[0.0] * 80), True, False),
        (PacketLoss(20), seen(100, *[0.0] * 100), False, True),
        (PacketLoss(20), seen(100, *[0.0] * 93), False, False),
        (PacketLoss(20), seen(100), False, False),
        (PacketLoss(90), seen(100, *[0.0] * 10), True, False),
        (PacketLoss(90), seen(100, 0.0), False, False),
        (Delay(100), seen(2, 0.1, 0.2), True, False),
        (Delay(100), seen(2, 0.01, 0.2), False, True),
        (Delay(100), seen(2), False, False),
    ],
)
def test_what_is_slow_and_what_is_not(
    slowness: Slowness, looks: Seen, there: bool, gone: bool
) -> None:
    assert slowness.is_in_effect(looks) is there
    assert slowness.is_gone(looks) is gone


ONE_OF_EACH = ("rate=8kbit", "loss=30", "delay=100ms")


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Refusal | None]]:
    """A user who may create no network: what `lacks` returns to a user who may."""

    def not_permitted() -> int:
        raise PermissionError

    refusals = [KIND.lacks(step(words)) for words in ONE_OF_EACH]
    monkeypatch.setattr(kind, "new_network", not_permitted)
    kind._why_not_in_a_run.cache_clear()
    yield refusals
    kind._why_not_in_a_run.cache_clear()


def test_a_user_who_may_not_try_it_gets_the_answer_of_a_run(
    ordinary: list[Refusal | None],
) -> None:
    if subprocess.run([*kind.AS_USER, "true"], check=False).returncode:
        pytest.skip("this system gives ordinary users no namespaces")
    assert [KIND.lacks(step(words)) for words in ONE_OF_EACH] == ordinary


@pytest.mark.usefixtures("ordinary")
@pytest.mark.parametrize("instead", ["false", "not-to-be-found"])
def test_a_user_who_cannot_try_it_at_all_is_refused(
    instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "AS_ITS_OWN_ROOT", (instead,))
    assert [KIND.lacks(step(words)) for words in ONE_OF_EACH] == [kind.CANNOT_TRY] * len(
        ONE_OF_EACH
    )
