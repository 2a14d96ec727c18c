"""The Docker runtime on a real engine."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from ipaddress import IPv4Network
from itertools import islice
from pathlib import Path

import docker
import pytest
from docker.types import IPAMConfig, IPAMPool

from lockcheck.compose.docker import runtime as docker_runtime
from lockcheck.compose.docker.agent_container import CAPABILITIES
from lockcheck.compose.docker.cleanup import clean_docker, remove_run
from lockcheck.compose.docker.compose_file import Names, free_subnets
from lockcheck.compose.docker.compose_up import taken_subnets
from lockcheck.compose.docker.runtime import DockerRuntime
from lockcheck.compose.runtime import Cluster, ClusterPlan
from lockcheck.errors import ClusterError
from lockcheck.servers import SERVERS
from tests.compose.plans import CLIENT, SERVER, STORAGE, small_plan, things_of
from tests.waiting import wait_for

pytestmark = [pytest.mark.docker, pytest.mark.cluster]

CAP_MKNOD = 27
REPOSITORY = Path(__file__).parents[2]

# Keeps the nodes of a plan until it is killed: a lockcheck whose terminal went away.
HOLDER = """
import sys, time
from pathlib import Path
from lockcheck.compose.docker.runtime import DockerRuntime
from lockcheck.compose.runtime import ClusterPlan
from tests.compose.plans import CLIENT, SERVER, STORAGE, small_plan, things_of
plan = ClusterPlan(sys.argv[1], (SERVER, CLIENT), Path(sys.argv[2]))
cluster = DockerRuntime().start(plan, print)
try:
    print("READY", flush=True)
    time.sleep(600)
finally:
    cluster.close()
"""
CHATTERBOX = """
import itertools, pathlib, sys
folder = pathlib.Path(sys.argv[1])
print("I write without end", flush=True)
with (folder / "history.jsonl").open("w") as history:
    for number in itertools.count():
        history.write(f"{number}\\n")
        history.flush()
"""


@contextmanager
def started(runtime: DockerRuntime, plan: ClusterPlan) -> Iterator[Cluster]:
    with closing(runtime.start(plan, print)) as cluster:
        yield cluster


def state_of(engine: docker.DockerClient, container: str) -> str:
    try:
        return engine.containers.get(container).status
    except docker.errors.NotFound:
        return "removed"


def test_nodes_come_up_are_collected_and_leave_nothing(
    runtime: DockerRuntime, engine: docker.DockerClient, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path)
    with started(runtime, plan) as cluster:
        cluster.agent.ask("await_ready")
        assert len(things_of(plan.run_id)) == 6  # agent, 3 nodes, network, volume
        assert "Redis server v=" in cluster.versions["redis"]
        assert {"docker", "compose", "kernel"} <= set(cluster.versions)
        container = cluster.enter_command("n1").split()[-2]
        assert state_of(engine, container) == "running"
        cluster.collect()
        cluster.collect()
    nodes = plan.nodes_folder
    assert (nodes / "n1" / "output.log").read_text().count("Ready to accept connections") == 1
    assert (nodes / "c1").is_dir()
    assert (nodes / "agent.log").read_text() == ""
    assert things_of(plan.run_id) == []


def test_the_agent_has_the_capabilities_that_it_needs_and_cannot_write_to_its_image(
    runtime: DockerRuntime, engine: docker.DockerClient, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path)
    asked = "grep CapPrm /proc/self/status; touch /etc/x; touch /x"
    with started(runtime, plan):
        agent = engine.containers.get(Names(plan.run_id).agent)
        output = agent.exec_run(["sh", "-c", asked]).output
    assert isinstance(output, bytes)
    text = output.decode()
    rights = int(re.findall(r"CapPrm:\s+(\w+)", text)[0], 16)
    assert rights.bit_count() == len(CAPABILITIES)
    assert not rights >> CAP_MKNOD & 1  # which an engine gives to every container
    assert text.count("Read-only file system") == 2


def test_closing_twice_is_once(runtime: DockerRuntime, tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    cluster = runtime.start(plan, print)
    cluster.close()
    cluster.close()
    assert things_of(plan.run_id) == []


def test_what_is_still_being_written_is_collected(
    runtime: DockerRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_runtime, "CLIENT_IN_IMAGE", ("python3", "-c", CHATTERBOX))
    plan = small_plan(tmp_path)
    history = plan.nodes_folder / "c1" / "history.jsonl"

    def collected_some(cluster: Cluster) -> bool:
        cluster.collect()
        return history.exists() and history.stat().st_size > 0

    with started(runtime, plan) as cluster:
        wait_for(lambda: collected_some(cluster), "the client has written something")
    assert history.read_text().startswith("0\n1\n")
    assert (history.parent / "output.log").read_text() == "I write without end\n"


def test_dead_nodes_are_collected_too(
    runtime: DockerRuntime, engine: docker.DockerClient, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path)
    names = Names(plan.run_id)
    with started(runtime, plan) as cluster:
        cluster.agent.ask("await_ready")
        for container in (names.container("n1"), names.container("c1"), names.agent):
            engine.containers.get(container).kill()
        clean_docker(print)  # another lockcheck's, that must leave us the time to look
        cluster.collect()
    assert "Redis is starting" in (plan.nodes_folder / "n1" / "output.log").read_text()
    assert things_of(plan.run_id) == []


def test_a_node_that_will_not_run_is_named_and_leaves_nothing(
    runtime: DockerRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the start, or by the first question after it if the node lived that long."""
    wrong = replace(SERVERS["redis"], image_program=("redis-server", "--no-such-option", "1"))
    monkeypatch.setitem(SERVERS, "redis", wrong)
    plan = small_plan(tmp_path, SERVER, CLIENT)
    with (
        pytest.raises(ClusterError, match="n1 exited right after it was started"),
        started(runtime, plan) as cluster,
    ):
        cluster.agent.ask("await_ready")
    assert things_of(plan.run_id) == []


def test_a_compose_that_fails_is_quoted_and_leaves_nothing(
    runtime: DockerRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_runtime, "sysctls_for", lambda *_: {"no.such.setting": "1"})
    plan = small_plan(tmp_path)
    with pytest.raises(ClusterError, match=r"no\.such\.setting"):
        runtime.start(plan, print)
    assert things_of(plan.run_id) == []


def test_an_agent_that_dies_fails_the_start_and_leaves_nothing(
    runtime: DockerRuntime, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path)
    with pytest.raises(ClusterError, match="agent exited before"):
        DockerRuntime(("python3", "-c", "raise SystemExit('not today')")).start(plan, print)
    assert "not today" in (plan.nodes_folder / "agent.log").read_text()
    assert things_of(plan.run_id) == []


@pytest.mark.parametrize("things", [1, 3, 5])
def test_a_start_that_is_interrupted_leaves_nothing(
    things: int, runtime: DockerRuntime, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path)
    command = [sys.executable, "-c", HOLDER, plan.run_id, str(plan.folder)]
    with subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE) as holder:
        try:
            wait_for(lambda: len(things_of(plan.run_id)) >= things, "it is under way")
            holder.send_signal(signal.SIGINT)
            _, errors = holder.communicate(timeout=60)
        finally:
            holder.kill()
    assert b"KeyboardInterrupt" in errors
    assert things_of(plan.run_id) == []


def test_a_second_run_of_the_same_id_does_not_harm_the_first(
    runtime: DockerRuntime, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path, SERVER)
    with started(runtime, plan) as cluster:
        before = things_of(plan.run_id)
        with pytest.raises(ClusterError, match="already in the Docker engine"):
            runtime.start(plan, print)
        assert things_of(plan.run_id) == before
        cluster.agent.ask("networks")


def test_a_subnet_that_is_taken_is_seen_and_one_taken_meanwhile_is_survived(
    runtime: DockerRuntime,
    engine: docker.DockerClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = small_plan(tmp_path, SERVER)
    first, second = islice(free_subnets(plan.run_id, taken_subnets(engine)), 2)
    blocker = f"{plan.run_id}-blocker"
    engine.networks.create(
        blocker,
        internal=True,
        ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=str(first))]),
        labels={"lockcheck.run": blocker},
    )
    try:
        assert first in taken_subnets(engine)
        others = [subnet for subnet in taken_subnets(engine) if subnet != first]
        monkeypatch.setattr(docker_runtime, "taken_subnets", lambda _client: others)
        with started(runtime, plan):
            described = json.loads((tmp_path / "compose.yml").read_text())
    finally:
        remove_run(engine, blocker)
    [used] = described["networks"]["nodes"]["ipam"]["config"]
    assert IPv4Network(used["subnet"]) == second


def test_a_killed_lockcheck_is_cleaned_and_a_live_one_is_not_touched(
    runtime: DockerRuntime, engine: docker.DockerClient, tmp_path: Path
) -> None:
    living = small_plan(tmp_path / "living", STORAGE, CLIENT)
    killed = small_plan(tmp_path / "killed")
    with started(runtime, living) as cluster:
        before = things_of(living.run_id)
        kill_outright(killed, engine)
        spared: list[str] = []
        clean_docker(print, spared.append)
        assert f"the run {living.run_id} is left alone: it is under way" in spared
        assert things_of(killed.run_id) == []
        assert things_of(living.run_id) == before
        cluster.agent.ask("networks")


def kill_outright(plan: ClusterPlan, engine: docker.DockerClient) -> None:
    """A lockcheck in the middle of a run; returns when its agent has seen that and ended.

    Another test's start may have removed the rest already.
    """
    command = [sys.executable, "-c", HOLDER, plan.run_id, str(plan.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as holder:
        try:
            lines = iter(holder.stdout or ())
            assert any(line == "READY\n" for line in lines)
        finally:
            holder.kill()
    names = Names(plan.run_id)
    containers = (names.agent, names.container("n1"), names.container("c1"))
    wait_for(
        lambda: {state_of(engine, each) for each in containers} <= {"exited", "removed"},
        "the agent has ended its nodes and itself",
    )
