"""What breaks although nobody meant it to: named, exit code 4, no finding, and nothing stays."""

from __future__ import annotations

import os
import signal
from contextlib import closing, suppress
from pathlib import Path

import pytest

from lockcheck.compose.docker.compose_file import Names
from lockcheck.compose.docker.engine import connect
from tests.running import RUNTIMES, need, processes_of, run_under_way, traces_of

CLUSTER = 4
AGENT = "agent"


def kill(node: str, run_id: str, runtime: str) -> None:
    if runtime == "docker":
        names = Names(run_id)
        container = names.agent if node == AGENT else names.container(node)
        with closing(connect()) as client:
            client.containers.get(container).kill()
        return
    victims = [pid for pid in processes_of(run_id) if _is(node, Path(f"/proc/{pid}"))]
    assert victims
    for pid in victims:
        with suppress(ProcessLookupError):  # with the agent, all others go
            os.kill(pid, signal.SIGKILL)


def _is(node: str, proc: Path) -> bool:
    if node == AGENT:
        return b"lockcheck.compose.agent" in (proc / "cmdline").read_bytes()
    return (proc / "cwd").readlink().name == node


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("node", ["r1", "c1", AGENT])
def test_what_dies_is_named(node: str, runtime: str, tmp_path: Path) -> None:
    need(runtime)
    options = ("--backend", "redis", "--nemesis", "none", "--workload", "mutex")
    with run_under_way(tmp_path / "out", runtime, *options) as (process, run_id):
        kill(node, run_id, runtime)
        process.wait(timeout=90)
    errors = (tmp_path / "out.stderr").read_text()
    assert process.returncode == CLUSTER, errors
    cause, cure = errors.splitlines()[-2:]
    assert node in cause
    assert ("went away" in cause) if node == AGENT else ("ended by itself" in cause)
    assert "cure:" in cure
    assert "Traceback" not in errors
    assert cause.removeprefix("lockcheck: ")[-30:] in (
        (tmp_path / "out" / run_id / "verdict.json").read_text()
    )
    assert traces_of(run_id, runtime) == []
