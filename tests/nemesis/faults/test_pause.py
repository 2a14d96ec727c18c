"""A pause is real, proven and healed; one that cannot be proven is recorded as unproven."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockcheck.errors import FaultError
from lockcheck.history import Event, EventType
from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.base import DidNotLastError
from lockcheck.nemesis.course.schedule import Nemesis
from lockcheck.nemesis.faults.pause import Pause
from lockcheck.nodes.waiting import wait_until
from tests.nemesis.client_events import grant
from tests.nemesis.real import FORKED, RealFleet, RealNode, cluster
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster

Nodes = dict[str, RealNode]
# One that starts another all the time, and waits for none of them.
STARTING = """
import signal, subprocess
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    subprocess.Popen(["sleep", "0.05"])
"""


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with cluster("c1", "c2", "r1") as nodes:
        yield nodes


@pytest.fixture
def node(nodes: Nodes) -> RealNode:
    nodes["c1"].run()
    return nodes["c1"]


async def inject_and_prove(pause: Pause) -> str:
    async with asyncio.timeout(20):
        await pause.inject()
        return await pause.prove()


def test_every_thread_stops_and_runs_again(node: RealNode) -> None:
    pause = Pause([node])
    assert asyncio.run(inject_and_prove(pause)) == "2 of 2 threads in state T"
    assert node.thread_states() == ["T", "T"]
    asyncio.run(pause.heal())
    assert "T" not in node.thread_states()


def test_every_process_of_a_node_stops_and_runs_again(nodes: Nodes) -> None:
    """A server that has forked writes on in its child otherwise."""
    nodes["r1"].run(FORKED, threads=4)
    pause = Pause([nodes["r1"]])
    assert asyncio.run(inject_and_prove(pause)) == "4 of 4 threads of 2 processes in state T"
    assert nodes["r1"].thread_states() == ["T"] * 4
    asyncio.run(pause.heal())
    assert "T" not in nodes["r1"].thread_states()


def test_who_starts_others_meanwhile_is_stopped_with_all_of_them(nodes: Nodes) -> None:
    nodes["r1"].run(STARTING, threads=1)
    for _ in range(5):
        wait_for(lambda: len(nodes["r1"].pids()) > 2, "it has started some")
        pause = Pause([nodes["r1"]])
        proof = asyncio.run(inject_and_prove(pause))
        before = nodes["r1"].pids()
        assert f"of {len(before)} processes in state T" in proof
        assert set(nodes["r1"].thread_states()) == {"T"}
        asyncio.run(asyncio.sleep(0.06))  # long enough for any of them to end, if it ran
        assert nodes["r1"].pids() == before
        asyncio.run(pause.heal())


def test_several_nodes_at_once(nodes: Nodes) -> None:
    nodes["c1"].run()
    nodes["r1"].run(FORKED, threads=4)
    pause = Pause([nodes["c1"], nodes["r1"]])
    assert asyncio.run(inject_and_prove(pause)) == (
        "c1: 2 of 2 threads in state T; r1: 4 of 4 threads of 2 processes in state T"
    )
    asyncio.run(pause.heal())
    assert "T" not in nodes["c1"].thread_states() + nodes["r1"].thread_states()


def test_healing_twice_or_a_dead_process_is_harmless(node: RealNode) -> None:
    pause = Pause([node])
    asyncio.run(inject_and_prove(pause))
    for _ in range(2):
        asyncio.run(pause.heal())
        assert "T" not in node.thread_states()
    os.kill(node.pids()[0], signal.SIGKILL)
    wait_for(lambda: not node.alive, "it is dead")
    asyncio.run(pause.heal())


def test_a_pause_that_somebody_else_ended_did_not_last(node: RealNode) -> None:
    pause = Pause([node])
    asyncio.run(inject_and_prove(pause))
    node.signal(signal.SIGCONT)
    wait_for(lambda: "T" not in node.thread_states(), "it runs")
    with pytest.raises(DidNotLastError, match="another process resumed c1"):
        asyncio.run(pause.heal())


def test_a_pause_that_is_over_before_it_is_proven_is_none(node: RealNode) -> None:
    pause = Pause([node])
    asyncio.run(pause.inject())
    node.signal(signal.SIGCONT)
    wait_for(lambda: "T" not in node.thread_states(), "it runs")
    with pytest.raises(FaultError, match="did not stay stopped"):
        asyncio.run(pause.prove())


def test_a_process_that_is_not_there_proves_nothing(nodes: Nodes) -> None:
    with pytest.raises(FaultError, match="no process"):
        asyncio.run(inject_and_prove(Pause([nodes["c1"]])))


def test_a_zombie_proves_nothing(node: RealNode) -> None:
    node.signal(signal.SIGKILL)
    wait_for(lambda: not node.alive, "it has ended")
    with pytest.raises(FaultError):
        asyncio.run(inject_and_prove(Pause([node])))


def run_nemesis(nodes: Nodes, text: str, workdir: Path, *, at_once: bool) -> list[Event]:
    """A nemesis for a lease of 100 ms, until its first fault has been proven."""
    events: list[Event] = []

    async def scene() -> None:
        began = asyncio.get_running_loop().time()
        nemesis = Nemesis(
            [parse_nemesis(text)],
            nodes=nodes,
            fleet=RealFleet(nodes),
            plan=Plan(backend="b", ttl_ms=100, time_limit_ms=10**6, clients=2, servers=1),
            workdir=workdir,
            seed=1,
            now_ns=lambda: int((asyncio.get_running_loop().time() - began) * 1e9),
            record=events.append,
        )
        nemesis.start()
        while not any(event.type is EventType.OK for event in events):
            grant(nemesis, "c1")
            await asyncio.sleep(0.005)
        await nemesis.finish(at_once=at_once)

    asyncio.run(asyncio.wait_for(scene(), 60))
    return events


@pytest.mark.parametrize("at_once", [False, True])
def test_it_strikes_the_holder_says_so_and_heals(
    nodes: Nodes, node: RealNode, at_once: bool, tmp_path: Path
) -> None:
    events = run_nemesis(nodes, "pause:holder", tmp_path, at_once=at_once)
    assert [(event.type, event.f, event.node) for event in events] == [
        (EventType.INVOKE, "pause", "c1"),
        (EventType.OK, "pause", "c1"),
        (EventType.INVOKE, "heal", "c1"),
        (EventType.OK, "heal", "c1"),
    ]
    lasted_ms = (events[2].time - events[1].time) / 1e6
    assert at_once or lasted_ms >= 100 + 50 + 500
    assert "T" not in node.thread_states()


def test_a_server_is_struck_when_asked_for(nodes: Nodes, tmp_path: Path) -> None:
    nodes["r1"].run()
    events = run_nemesis(nodes, "pause:server", tmp_path, at_once=True)
    assert {event.node for event in events} == {"r1"}


def test_what_did_not_take_is_recorded_as_such(nodes: Nodes, tmp_path: Path) -> None:
    events: list[Event] = []

    async def scene() -> None:
        nemesis = Nemesis(
            [parse_nemesis("pause:server")],
            nodes=nodes,
            fleet=RealFleet(nodes),
            plan=Plan(backend="b", ttl_ms=100, time_limit_ms=10**6, clients=2, servers=1),
            workdir=tmp_path,
            seed=1,
            now_ns=lambda: 0,
            record=events.append,
        )
        nemesis.start()
        await wait_until(lambda: len(events) >= 2, "it is recorded as unproven", 30)
        await nemesis.finish(at_once=True)

    asyncio.run(asyncio.wait_for(scene(), 60))
    assert [event.type for event in events[:2]] == [EventType.INVOKE, EventType.INFO]
    assert "no process" in (events[1].error or "")


def test_no_fault_is_begun_that_cannot_end_in_time(nodes: Nodes, tmp_path: Path) -> None:
    events: list[Event] = []
    nodes["r1"].run()

    async def scene() -> None:
        nemesis = Nemesis(
            [parse_nemesis("pause:server")],
            nodes=nodes,
            fleet=RealFleet(nodes),
            plan=Plan(backend="b", ttl_ms=1000, time_limit_ms=1999, clients=2, servers=1),
            workdir=tmp_path,
            seed=1,
            now_ns=lambda: 0,
            record=events.append,
        )
        nemesis.start()
        await asyncio.gather(*nemesis._tasks)  # it ends by itself

    asyncio.run(asyncio.wait_for(scene(), 60))
    assert events == []
