"""Clocks of real nodes jump, drift and strobe; it is proven, and they are right again."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from lockcheck.errors import FaultError, UserError
from lockcheck.history import Event
from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.aims import at_nodes
from lockcheck.nemesis.base import DidNotLastError
from lockcheck.nemesis.clock.engines import VdsoClocks
from lockcheck.nemesis.clock.facts import ClockFacts
from lockcheck.nemesis.clock.skew import TRUE, Skew
from lockcheck.nemesis.clock.vdso import Vdso
from lockcheck.nemesis.clock.vdso_code import this_processor
from lockcheck.nemesis.clock.vdso_image import prepared
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.drawing import applicable
from lockcheck.nemesis.faults.clock import KIND, ClockFault
from lockcheck.nemesis.network.links import Links
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Node, NodeSpec, Role
from lockcheck.servers.base import Clock
from lockcheck.servers.kind import Kind
from tests.nemesis import plans
from tests.nemesis.clock.test_vdso import functions_of
from tests.nemesis.plans import check_nemesis
from tests.nemesis.real import FORKED, RealFleet, RealNode, cluster
from tests.processes import OneProcess

Nodes = dict[str, RealNode]
Run = Callable[[Coroutine[None, None, Any]], Any]
S = 1_000_000_000
strikes = pytest.mark.skipif(this_processor() is None, reason="clocks cannot be moved here")


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with cluster("r1", "r2", "c1") as nodes:
        nodes["r1"].run(FORKED, threads=4)
        nodes["r2"].run()
        nodes["c1"].run()
        yield nodes


def plan(**more: object) -> Plan:
    return plans.plan("b", 2, **{"ttl_ms": 100, "time_limit_ms": 10**6, "clients": 1, **more})


def fault(nodes: Nodes, text: str, *names: str, events: list[Event] | None = None) -> ClockFault:
    (step,) = parse_nemesis(text)
    scene = Scene(nodes, RealFleet(nodes), plan(), Holders(Path()), Links(nodes))
    if events is not None:
        scene.record = events.append
    strike = step.kind.strike(step, names, scene)
    assert isinstance(strike, ClockFault)
    return strike


async def inject_and_prove(clock: ClockFault) -> str:
    async with asyncio.timeout(30):
        await clock.inject()
        return await clock.prove()


def offsets_s(node: RealNode) -> list[tuple[float, float]]:
    """Of all its processes: wall, monotonic."""

    async def read() -> list[tuple[float, float]]:
        clocks = VdsoClocks(node)
        wall, monotonic = [await clocks.offsets_ns(clock) for clock in Clock]
        return [(w / S, m / S) for w, m in zip(wall, monotonic, strict=True)]

    return asyncio.run(read())


def is_as_before(node: RealNode) -> bool:
    ours = functions_of(os.getpid())
    return all(functions_of(pid) == ours for pid in node.pids())


@pytest.fixture
def run() -> Iterator[Run]:
    """A fault goes on with what it does in between, as long as there is something to wait for."""
    with asyncio.Runner() as runner:
        yield runner.run


RIGHT = pytest.approx((0, 0), abs=0.01)


@strikes
@pytest.mark.cluster
@pytest.mark.parametrize(
    ("text", "moved", "proof"),
    [
        ("clock:jump=+30s", (30, 30), "wall +30.000 s, monotonic +30.000 s in 2 processes"),
        ("clock:jump=-5s", (-5, -5), "wall -5.000 s, monotonic -5.000 s in 2 processes"),
        ("clock:jump=+30s,wall", (30, 0), "wall +30.000 s in 2 processes"),
        ("clock:jump=+30s,mono", (0, 30), "monotonic +30.000 s in 2 processes"),
    ],
)
def test_all_processes_jump_and_come_back(
    nodes: Nodes, run: Run, text: str, moved: tuple[float, float], proof: str
) -> None:
    clock, pids = fault(nodes, text, "r1"), nodes["r1"].pids()
    assert run(inject_and_prove(clock)) == f"r1: {proof}, by vDSO"
    assert offsets_s(nodes["r1"]) == [pytest.approx(moved, abs=0.01)] * 2
    assert offsets_s(nodes["r2"]) == [RIGHT]
    run(clock.heal())
    run(clock.heal())
    assert offsets_s(nodes["r1"]) == [RIGHT] * 2
    assert is_as_before(nodes["r1"])
    assert nodes["r1"].pids() == pids
    assert not {"T", "t"} & set(nodes["r1"].thread_states())


@strikes
@pytest.mark.cluster
def test_of_a_client_the_wall_clock_alone_is_moved(
    nodes: Nodes, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cannot_tell(_node: Node) -> None:
        raise FaultError("too busy to tell")

    clock = fault(nodes, "clock:client,jump=+30s", "c1")
    assert run(inject_and_prove(clock)) == "c1: wall +30.000 s, by vDSO"
    assert offsets_s(nodes["c1"]) == [pytest.approx((30, 0), abs=0.01)]
    with monkeypatch.context() as busy:
        busy.setattr("lockcheck.nemesis.faults.clock.is_right", cannot_tell)
        with pytest.raises(FaultError, match="too busy"):
            run(clock.heal())
    run(clock.heal())  # what was given back by then was not changed from outside
    assert offsets_s(nodes["c1"]) == [RIGHT]


@strikes
@pytest.mark.cluster
def test_clocks_drift_and_strobe_on_several_nodes(nodes: Nodes, run: Run) -> None:
    async def drift_then_strobe() -> None:
        drift = fault(nodes, "clock:drift=1.5", "r1", "r2")
        proof = await inject_and_prove(drift)
        seen = re.findall(r"(\w+) at (\S+) of its rate", proof)
        assert [clock for clock, _ in seen] == ["wall", "monotonic"] * 2
        assert [float(rate) for _, rate in seen] == pytest.approx([1.5] * 4, abs=0.003)
        await drift.heal()
        strobe = fault(nodes, "clock:strobe=5ms,jump=+2s", "r1")
        assert "wall 0 and +2.000 s by turns" in await inject_and_prove(strobe)
        await strobe.heal()

    run(drift_then_strobe())
    for name in ("r1", "r2"):
        assert all(offsets == RIGHT for offsets in offsets_s(nodes[name]))
        assert is_as_before(nodes[name])


@strikes
@pytest.mark.cluster
def test_what_lives_by_its_monotonic_clock_is_started_again_with_its_data(
    nodes: Nodes, run: Run
) -> None:
    nodes["r2"].spec = NodeSpec("r2", Role.SERVER, Kind("etcd"))
    before = nodes["r2"].pids()
    for text, starts in (("clock:jump=+30s,wall", []), ("clock:jump=+30s", [True])):
        clock = fault(nodes, text, "r2")
        run(inject_and_prove(clock))
        run(clock.heal())
        assert nodes["r2"].starts == starts
        assert (nodes["r2"].pids() == before) == (not starts)
        assert offsets_s(nodes["r2"]) == [RIGHT]


@strikes
@pytest.mark.cluster
def test_the_history_tells_what_all_clocks_told(nodes: Nodes, run: Run) -> None:
    events: list[Event] = []
    clock = fault(nodes, "clock:jump=+30s,wall", "r1", events=events)
    run(inject_and_prove(clock))
    run(clock.heal())
    assert {(event.process, event.f) for event in events} == {("run", "clocks")}
    first, *between, last = [event.value for event in events]
    nobody_off = {name: pytest.approx([0.0, 0.0], abs=1) for name in nodes}
    assert first == last == nobody_off
    assert {"r1": pytest.approx([30_000.0, 0.0], abs=1)} in between


def memories_opened() -> int:
    """Of this process, by itself."""
    found = (os.path.realpath(path) for path in Path("/proc/self/fd").iterdir())
    return [*found].count(f"/proc/{os.getpid()}/mem")


class NotTakenYet(VdsoClocks):
    async def offsets_ns(self, clock: Clock) -> list[int]:
        raise AssertionError(f"it cannot be known how far {clock} is off")


@strikes
def test_before_and_after_all_clocks_are_read_as_the_kernels(tmp_path: Path) -> None:
    node, events = OneProcess("r1", os.getpid()), list[Event]()
    scene = Scene({"r1": node}, RealFleet({}), plan(), Holders(tmp_path), Links({}))
    scene.record = events.append
    opened = memories_opened()
    asyncio.run(ClockFacts(scene, {"r1": NotTakenYet(node)}).note_all())
    assert [event.value for event in events] == [{"r1": pytest.approx([0, 0], abs=1)}]
    assert memories_opened() == opened


@strikes
@pytest.mark.cluster
def test_what_somebody_else_has_changed_did_not_last(nodes: Nodes, run: Run) -> None:
    clock = fault(nodes, "clock:jump=+30s", "r2")
    run(inject_and_prove(clock))
    other = Vdso(nodes["r2"].pids()[0])
    other.apply(Skew(wall=TRUE.jumped(7 * S)))
    other.close()
    with pytest.raises(DidNotLastError, match="r2"):
        run(clock.heal())
    assert offsets_s(nodes["r2"]) == [RIGHT]


@strikes
@pytest.mark.cluster
def test_no_process_proves_nothing_and_a_dead_one_is_healed_in_vain(nodes: Nodes, run: Run) -> None:
    clock = fault(nodes, "clock:jump=+30s", "r2")
    run(inject_and_prove(clock))
    nodes["r2"].end()
    run(clock.heal())
    with pytest.raises(FaultError, match="no process"):
        run(inject_and_prove(fault(nodes, "clock", "r2")))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("clock:drift=2,jump=+3s", "leave out drift"),
        ("clock:drift=2,strobe=3s", "leave out drift"),
        ("clock:drift=1", "drift=1.5"),
        ("clock:wall,mono", "leave out wall and mono"),
        ("clock:client,mono", "aim at server"),
        ("clock:holder,mono", "aim at server"),
        ("clock:follower", "aim at server"),
        ("clock:leader", "aim at server"),
    ],
)
def test_what_cannot_be_is_refused_with_the_cure(text: str, why: str) -> None:
    with pytest.raises(UserError) as refused:
        check_nemesis([text], plan())
    assert why in refused.value.cure


@pytest.mark.parametrize(
    ("text", "why"),
    [("clock:mono", "leave out mono"), ("clock:drift=2", "jump, or strobe; or move the wall")],
)
def test_what_libfaketime_cannot_do_is_refused_where_nothing_else_can(text: str, why: str) -> None:
    with pytest.raises(UserError, match="libfaketime") as refused:
        check_nemesis([text], plan(kinds=(Kind("zookeeper"),)))
    assert why in refused.value.cure
    check_nemesis(["clock:drift=2,wall", "clock:client,drift=2"], plan(kinds=(Kind("zookeeper"),)))


def test_servers_that_need_libfaketime_and_do_not_have_it_are_refused() -> None:
    without = plan(kinds=(Kind("zookeeper"),), faketime=False)
    with pytest.raises(UserError, match="do not run under libfaketime") as refused:
        check_nemesis(["clock"], without)
    assert "faketime=True" in refused.value.cure
    check_nemesis(["clock:wall", "clock:client"], without)
    (step,) = parse_nemesis("clock")
    named = at_nodes(step, ("c1",), at_clients=True)
    assert named.kind.why_not(named, without) is None


def test_a_processor_that_nobody_knows_is_told_of_before_it_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown() -> None:
        prepared(bytes(64), None)

    monkeypatch.setattr("lockcheck.nemesis.faults.clock.kernels_image", unknown)
    lacking = KIND.lacks(parse_nemesis("clock")[0])
    assert lacking
    assert "can be moved only on" in lacking.reason
    assert list(applicable(KIND, plan())) == []


@pytest.mark.parametrize(
    "text", ["clock", "clock:jump=-1s,mono", "clock:drift=0.5", "clock:random"]
)
def test_what_can_be_is_taken(text: str) -> None:
    check_nemesis([text], plan())
