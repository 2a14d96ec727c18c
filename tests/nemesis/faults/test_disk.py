"""A data folder that takes no more writes of a real process, and takes them again."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockcheck.errors import ClusterError, FaultError
from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.base import Strike
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.network.links import Links
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.namespaces import enter_network, mount
from lockcheck.nodes.waiting import wait_until
from tests.nemesis.real import RealFleet, RealNode, cluster
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster

Nodes = dict[str, RealNode]
PLAN = Plan(backend="made-up", ttl_ms=1000, time_limit_ms=15_000, clients=1, servers=2)
LIMIT = 64 << 20
# Appends to a file that it holds open, says so after the first time, and ends when it cannot.
WRITER = """
import pathlib, sys, time
with open(sys.argv[1], "ab", buffering=0) as kept:
    while True:
        kept.write(b"x" * 4096)
        pathlib.Path(sys.argv[2]).touch()
        time.sleep(0.005)
"""


def data_of(node: RealNode) -> Path:
    assert node.data is not None
    return node.data


def launched(node: RealNode, program: str, *arguments: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: enter_network(node.network),  # noqa: PLW1509 - one thread
    )


class WritingFleet(RealFleet):
    async def start(self, name: str, *, data: bool = True) -> None:
        node = self.nodes[name]
        wrote = data_of(node).with_name(f"{name}-wrote")
        wrote.unlink(missing_ok=True)
        node.starts.append(data)
        node.process = launched(node, WRITER, data_of(node) / "kept", wrote)
        process = node.process
        await wait_until(lambda: wrote.exists() or process.poll() is not None, f"{name} writes", 20)
        await self.ready(name)
        node.down = False

    async def ready(self, name: str) -> None:
        process = self.nodes[name].process
        if process is None or process.poll() is not None:
            raise ClusterError(f"{name} has ended")


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    folders = [tmp_path / "r1", tmp_path / "r2"]
    with cluster("r1", "r2", "c1") as nodes:
        fleet = WritingFleet(nodes)
        for folder in folders:
            folder.mkdir()
            mount("test", folder, "tmpfs", options=f"size={LIMIT}")
            nodes[folder.name].data = folder
            asyncio.run(fleet.start(folder.name))
        try:
            yield nodes
            assert [limit_of(folder) for folder in folders] == [LIMIT] * 2
            assert [why_no_write(folder) for folder in folders] == [0] * 2
            assert [kept(folder) for folder in folders] == [["kept"]] * 2
        finally:
            for node in nodes.values():
                node.end()
            for folder in folders:
                subprocess.run(["umount", folder], check=True)


def limit_of(folder: Path) -> int:
    about = os.statvfs(folder)
    return about.f_blocks * about.f_frsize


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def why_no_write(folder: Path) -> int:
    """As another process than the one that writes there sees it."""
    probe = folder / "seen"
    try:
        probe.write_bytes(b"x" * 8192)
    except OSError as error:
        return error.errno or 0
    else:
        return 0
    finally:
        if "seen" in kept(folder):
            probe.unlink()


def disk(nodes: Nodes, words: str, *struck: str, fleet: RealFleet | None = None) -> Strike:
    (step,) = parse_nemesis(f"disk:{words}")
    scene = Scene(nodes, fleet or WritingFleet(nodes), PLAN, Holders(Path()), Links(nodes))
    return step.kind.strike(step, struck, scene)


async def inject_and_prove(strike: Strike) -> str:
    await strike.inject()
    return await strike.prove()


def test_full_means_that_a_server_that_wants_more_ends_and_is_started_again(nodes: Nodes) -> None:
    strike, one, other = disk(nodes, "server", "r1"), nodes["r1"], nodes["r2"]
    before = other.pids()
    assert asyncio.run(inject_and_prove(strike)) == (
        "a write in the data folder of r1 ends with ENOSPC"
    )
    assert why_no_write(data_of(one)) == errno.ENOSPC
    assert why_no_write(data_of(other)) == 0
    wait_for(lambda: not one.alive, "it ends of it")
    assert (one.down, one.may_end) == (False, True)
    size = (data_of(one) / "kept").stat().st_size
    asyncio.run(strike.heal())
    assert (one.down, one.may_end, one.starts) == (False, False, [True, True])
    assert (data_of(one) / "kept").stat().st_size >= size > 0
    assert (other.pids(), other.starts, other.may_end) == (before, [True], False)


def test_whoever_gets_along_without_room_goes_on_as_it_is(nodes: Nodes) -> None:
    one = nodes["r1"]
    one.end()
    one.run()
    strike, before = disk(nodes, "server", "r1"), one.pids()
    asyncio.run(inject_and_prove(strike))
    asyncio.run(strike.heal())
    assert (one.pids(), one.starts, one.may_end) == (before, [True], False)


class HangingFleet(WritingFleet):
    hangs = True

    async def ready(self, name: str) -> None:
        if self.hangs:
            self.hangs = False
            await asyncio.Event().wait()


def test_who_lives_on_and_serves_nobody_is_started_again(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockcheck.nemesis.faults.disk.SERVES_S", 0.01)
    one = nodes["r1"]
    one.end()
    one.run()
    strike = disk(nodes, "server", "r1", fleet=HangingFleet(nodes))
    asyncio.run(inject_and_prove(strike))
    asyncio.run(strike.heal())
    assert (one.alive, one.may_end, one.starts) == (True, False, [True, True])


def test_read_only_is_what_a_server_finds_when_it_is_started(nodes: Nodes) -> None:
    strike = disk(nodes, "all,read-only", "r1", "r2")
    proof = asyncio.run(inject_and_prove(strike))
    assert proof.startswith("a write in the data folder of r1, r2 ends with EROFS; ")
    assert {*proof.split("; ")[1:]} == {
        "r1 exited on start",
        "r2 exited on start",
    }
    assert why_no_write(data_of(nodes["r2"])) == errno.EROFS
    assert all(node.down or node.may_end for node in (nodes["r1"], nodes["r2"]))
    asyncio.run(strike.heal())
    asyncio.run(strike.heal())
    for name in ("r1", "r2"):
        assert (nodes[name].alive, nodes[name].down, nodes[name].may_end) == (True, False, False)


def test_healing_in_vain_is_harmless(nodes: Nodes) -> None:
    before = nodes["r1"].pids()
    for words in ("server", "server,read-only"):
        asyncio.run(disk(nodes, words, "r1").heal())
    assert nodes["r1"].pids() == before


def test_where_there_is_room_again_nothing_is_proven(nodes: Nodes) -> None:
    strike = disk(nodes, "server", "r1")
    asyncio.run(strike.inject())
    (data_of(nodes["r1"]) / "kept").write_bytes(b"")  # it has been cleaned up
    with pytest.raises(FaultError, match="a write on r1 ends with success, not ENOSPC"):
        asyncio.run(strike.prove())
    asyncio.run(strike.heal())


def test_who_keeps_no_data_has_no_disk(nodes: Nodes) -> None:
    with pytest.raises(FaultError, match="c1 keeps no data"):
        disk(nodes, "server", "c1")
