"""A real ZooKeeper under libfaketime: its clocks jump, and are right again when it starts anew."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockcheck.compose.local.fetching import bring_faketime, bring_server, why_no_server
from lockcheck.errors import ClusterError, FaultError
from lockcheck.nemesis.clock.faketime import FaketimeClocks
from lockcheck.nemesis.clock.skew import TRUE, Skew
from lockcheck.nodes.namespaces import enter_network
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.asking.answer import answers
from lockcheck.servers.base import Clock, Here
from lockcheck.servers.faketime import FILE, file_text, find_library, under_faketime
from lockcheck.servers.kind import Kind
from lockcheck.servers.zookeeper import ZOOKEEPER
from tests.nemesis.real import RealNode, cluster

pytestmark = pytest.mark.cluster
S = 1_000_000_000


@pytest.fixture
def node() -> Iterator[RealNode]:
    if reason := why_no_server(ZOOKEEPER):
        pytest.skip(reason)
    bring_server(ZOOKEEPER, print)
    try:
        bring_faketime(print)
    except ClusterError as error:
        pytest.skip(f"{error.message}: {error.cure}")
    with cluster("r1") as nodes:
        nodes["r1"].spec = NodeSpec("z1", Role.SERVER, Kind("zookeeper"))
        yield nodes["r1"]


def start(node: RealNode, folder: Path, *, faked: bool = True) -> None:
    program = ZOOKEEPER.find()
    assert program is not None
    here = Here("z1", ("z1",), str(folder), program)
    for name, text in {**ZOOKEEPER.files(here), FILE: file_text(0)}.items():
        if name != "myid":  # alone it needs no number
            lines = (line for line in text.splitlines() if not line.startswith("server."))
            (folder / name).write_text("\n".join(lines) + "\n")
    command = ZOOKEEPER.command(here)
    node.process = subprocess.Popen(
        under_faketime(command, str(find_library()), str(folder)) if faked else command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: enter_network(node.network),  # noqa: PLW1509 - one thread
    )


async def is_ready(node: RealNode) -> None:
    for _ in range(200):
        if await answers(node, (node.address, ZOOKEEPER.port), ZOOKEEPER.ready):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it was never ready")


def test_it_jumps_to_and_fro_and_is_right_again_when_it_is_started_anew(
    node: RealNode, tmp_path: Path
) -> None:
    start(node, tmp_path)
    asyncio.run(is_ready(node))
    clocks = FaketimeClocks(node)

    async def jumps() -> None:
        await clocks.take(Skew(), time.monotonic_ns)
        for by_s in (30, 90, 2):
            skew = Skew(TRUE.jumped(by_s * S), TRUE.jumped(by_s * S))
            clocks.apply(skew)
            [offset_ns] = await clocks.offsets_ns(Clock.MONOTONIC)
            assert abs(offset_ns - by_s * S) < clocks.tolerance_ns
            assert clocks.are_set_to(skew)
            assert not clocks.are_set_to(Skew())

    asyncio.run(jumps())
    node.end()
    asyncio.run(clocks.give_back())
    assert (tmp_path / FILE).read_text() == file_text(0)
    start(node, tmp_path)
    asyncio.run(is_ready(node))
    asyncio.run(clocks.give_back())


def test_what_does_not_run_under_it_is_not_touched(node: RealNode, tmp_path: Path) -> None:
    start(node, tmp_path, faked=False)
    asyncio.run(is_ready(node))
    skew = Skew(monotonic=TRUE.jumped(S))
    with pytest.raises(FaultError, match="does not run under libfaketime"):
        asyncio.run(FaketimeClocks(node).take(skew, time.monotonic_ns))
    assert (tmp_path / FILE).read_text() == file_text(0)
