"""A kill ends every process of its nodes, says so, and has them started again."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockcheck.client.aims import AIMS
from lockcheck.errors import FaultError
from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.base import Strike
from lockcheck.nemesis.course import held_lock
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.network.links import Links
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.waiting import wait_until
from tests.nemesis.client_events import grant
from tests.nemesis.real import FORKED, RealFleet, RealNode, cluster

pytestmark = pytest.mark.cluster

Nodes = dict[str, RealNode]
PLAN = Plan(backend="made-up", ttl_ms=2000, time_limit_ms=15_000, clients=1, servers=1)


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with cluster("r1", "c1") as nodes:
        nodes["r1"].run(FORKED, threads=4)
        nodes["c1"].run()
        yield nodes


def kill(nodes: Nodes, words: str, *struck: str, fleet: RealFleet | None = None) -> Strike:
    (step,) = parse_nemesis(f"kill:{words}")
    scene = Scene(nodes, fleet or RealFleet(nodes), PLAN, Holders(Path()), Links(nodes))
    return step.kind.strike(step, struck, scene)


async def inject_and_prove(strike: Strike) -> str:
    await strike.inject()
    return await strike.prove()


def test_every_process_is_gone_and_comes_back(nodes: Nodes) -> None:
    before = nodes["r1"].pids()
    strike = kill(nodes, "server", "r1")
    assert asyncio.run(inject_and_prove(strike)) == "2 processes were killed, and none is left"
    assert not nodes["r1"].pids()
    assert nodes["r1"].down
    assert nodes["c1"].alive
    asyncio.run(strike.heal())
    assert nodes["r1"].alive
    assert not nodes["r1"].down
    assert not set(nodes["r1"].pids()) & set(before)
    assert nodes["r1"].starts == [True]


def test_several_at_once(nodes: Nodes) -> None:
    strike = kill(nodes, "server", "r1", "c1")
    assert asyncio.run(inject_and_prove(strike)).startswith("3 processes were killed")
    assert not nodes["r1"].alive
    assert not nodes["c1"].alive
    asyncio.run(strike.heal())
    assert nodes["r1"].alive
    assert nodes["c1"].alive


def test_without_its_data(nodes: Nodes) -> None:
    strike = kill(nodes, "server,no-data", "r1")
    asyncio.run(strike.inject())
    asyncio.run(strike.heal())
    assert nodes["r1"].starts == [False]


def test_never_again(nodes: Nodes) -> None:
    strike = kill(nodes, "server,restart=never", "r1")
    asyncio.run(inject_and_prove(strike))
    asyncio.run(strike.heal())
    assert not nodes["r1"].alive
    assert nodes["r1"].down


def test_healing_is_harmless_in_vain_and_twice(nodes: Nodes) -> None:
    strike = kill(nodes, "server", "r1")
    asyncio.run(strike.heal())
    assert nodes["r1"].starts == []
    asyncio.run(strike.inject())
    asyncio.run(strike.heal())
    asyncio.run(strike.heal())
    assert nodes["r1"].starts == [True]


def test_one_that_is_gone_already_proves_nothing(nodes: Nodes) -> None:
    nodes["r1"].end()
    with pytest.raises(FaultError, match="r1 had no process"):
        asyncio.run(inject_and_prove(kill(nodes, "server", "r1")))


class Stubborn(RealFleet):
    async def end(self, name: str) -> None:
        """It is not."""


def test_one_that_lives_on_is_said_to(nodes: Nodes) -> None:
    strike = kill(nodes, "server", "r1", fleet=Stubborn(nodes))
    with pytest.raises(FaultError, match="still alive"):
        asyncio.run(inject_and_prove(strike))


class Halting(RealFleet):
    """Of two nodes the first start fails half-way, its process there."""

    failed = False

    async def start(self, name: str, *, data: bool = True) -> None:
        await super().start(name, data=data)
        if name == "r1" and not self.failed:
            self.failed = True
            raise OSError("it is not ready")


def test_a_start_that_fails_keeps_no_other_down_and_can_be_tried_again(nodes: Nodes) -> None:
    strike = kill(nodes, "server", "r1", "c1", fleet=Halting(nodes))
    asyncio.run(strike.inject())
    with pytest.raises(OSError, match="not ready"):
        asyncio.run(strike.heal())
    assert nodes["c1"].alive
    half_way = nodes["r1"].pids()
    asyncio.run(strike.heal())
    assert nodes["r1"].pids() != half_way
    assert len(nodes["r1"].pids()) == 1
    assert nodes["c1"].starts == [True]


# --- one after the other -------------------------------------------------------------------------


class Watching(RealFleet):
    """Notes which nodes are down when one is ended, and whether it is up when it is started."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes)
        self.ended_while_down: list[tuple[str, list[str]]] = []
        self.ended_first_ns = 0

    async def end(self, name: str) -> None:
        down = [other for other, node in self.nodes.items() if not node.alive]
        self.ended_while_down.append((name, down))
        self.ended_first_ns = self.ended_first_ns or time.monotonic_ns()
        await super().end(name)


async def roll(strike: Strike, scene: Scene, *grants: str) -> str:
    """With these clients being granted the lock, one after the other, as soon as it is begun."""
    began_ns, fleet = time.monotonic_ns(), scene.fleet
    rolling = asyncio.create_task(strike.inject())
    await asyncio.sleep(0)  # it asks who holds on
    for node in grants:
        grant(scene.holders, node)
    since_ns = await rolling
    assert isinstance(fleet, Watching)
    assert began_ns <= (since_ns or 0) <= fleet.ended_first_ns
    return await strike.prove()


@pytest.fixture
def three() -> Iterator[Nodes]:
    with cluster("r1", "r2", "r3", "c1", "c2") as nodes:
        for name in ("r1", "r2", "r3", "c1", "c2"):
            nodes[name].run()
        yield nodes


def rolling(nodes: Nodes, folder: Path, words: str, fleet: RealFleet) -> tuple[Strike, Scene]:
    for client in ("c1", "c2"):
        (folder / client / AIMS).mkdir(parents=True)
    (step,) = parse_nemesis(f"kill:{words}")
    scene = Scene(nodes, fleet, PLAN, Holders(folder), Links(nodes))
    return step.kind.strike(step, ("r1", "r2", "r3"), scene), scene


def test_one_after_the_other_each_up_again_before_the_next(three: Nodes, tmp_path: Path) -> None:
    fleet = Watching(three)
    before = {name: three[name].pids() for name in ("r1", "r2", "r3")}
    strike, scene = rolling(three, tmp_path, "all,rolling,no-data", fleet)
    proof = asyncio.run(roll(strike, scene, "c1", "c2"))
    assert re.fullmatch(
        r"each was gone, and up again before the next: r1 \d+ ms, r2 \d+ ms, r3 \d+ ms; c1 held k1",
        proof,
    )
    assert fleet.ended_while_down == [("r1", []), ("r2", []), ("r3", [])]
    assert not [name for name, pids in before.items() if {*pids} & {*three[name].pids()}]
    assert [three[name].starts for name in ("r1", "r2", "r3")] == [[False]] * 3
    assert [list((tmp_path / name / AIMS).iterdir()) for name in ("c1", "c2")] == [[], []]
    asyncio.run(strike.heal())
    assert [three[name].starts for name in ("r1", "r2", "r3")] == [[False]] * 3


def test_where_nobody_holds_it_they_are_restarted_all_the_same(
    three: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_lock, "LEASES_TO_WAIT", 0.0)
    strike, scene = rolling(three, tmp_path, "all,rolling", Watching(three))
    assert "held" not in asyncio.run(roll(strike, scene))
    assert [three[name].starts for name in ("r1", "r2", "r3")] == [[True]] * 3


def test_one_that_does_not_come_up_ends_it_and_is_started_by_the_heal(
    three: Nodes, tmp_path: Path
) -> None:
    strike, scene = rolling(three, tmp_path, "all,rolling", Halting(three))
    with pytest.raises(OSError, match="not ready"):
        asyncio.run(roll(strike, scene, "c1"))
    assert (three["r2"].starts, three["r3"].starts) == ([], [])
    asyncio.run(strike.heal())
    assert all(three[name].alive and not three[name].down for name in ("r1", "r2", "r3"))


def test_who_holds_the_lock_meanwhile_is_let_go_before_its_lease_is_over(
    three: Nodes, tmp_path: Path
) -> None:
    strike, scene = rolling(three, tmp_path, "all,rolling,restart=1s", Watching(three))

    async def watched() -> tuple[bool, bool]:
        loop = asyncio.get_running_loop()
        began, marks = loop.time(), tmp_path / "c1" / AIMS
        task = asyncio.create_task(roll(strike, scene, "c1"))
        await wait_until(lambda: any(marks.iterdir()), "it is kept", 10)
        await wait_until(lambda: not any(marks.iterdir()), "it is let go", 10)
        in_time, still_rolling = loop.time() - began < PLAN.ttl_ms / 1000, not task.done()
        await task
        return in_time, still_rolling

    assert asyncio.run(watched()) == (True, True)
