"""Failures that no fault injected: named, exit code 4, no finding, and nothing stays."""

from __future__ import annotations

import os
import re
import signal
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lockcheck.cli.commands import main
from lockcheck.cli.gate import print_error
from lockcheck.compose.docker.compose_file import Names
from lockcheck.compose.docker.engine import connect
from lockcheck.errors import LockcheckError
from lockcheck.servers import SERVERS
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
        return b"lockcheck.agent.agent" in (proc / "cmdline").read_bytes()
    return node in (proc / "cwd").readlink().parts  # or in its data folder, below


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_server_that_does_not_come_up_is_quoted(
    runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    need(runtime)
    wrong = replace(SERVERS["redis"], command=lambda here: (*here.program, "--no-such-option", "1"))
    monkeypatch.setitem(SERVERS, "redis", wrong)
    assert run_here(runtime, tmp_path) == CLUSTER
    [folder] = [path for path in tmp_path.iterdir() if not path.is_symlink()]
    cause, cure = capfd.readouterr().err.splitlines()[-2:]
    assert "exited right after it was started" in cause
    log = (folder / "nodes" / "r1" / "output.log").read_text().splitlines()
    assert log[-1] in cause
    assert "output.log" in cure
    assert (folder / "report.html").exists()
    assert traces_of(folder.name, runtime) == []


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_server_of_another_version_is_refused(
    runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In `local` nothing is started; in containers it is what the server says there."""
    need(runtime)
    wanted = replace(SERVERS["redis"].versions["8"], says="v=99")
    monkeypatch.setitem(SERVERS, "redis", replace(SERVERS["redis"], versions={"8": wanted}))
    assert run_here(runtime, tmp_path, "--version", "redis=8") == CLUSTER
    assert re.search(r"says \w+ server v=\d", capfd.readouterr().err)
    runs = [path.name for path in tmp_path.iterdir() if not path.is_symlink()]
    assert [trace for run in runs for trace in traces_of(run, runtime)] == []


def run_here(runtime: str, out: Path, *options: str) -> int:
    """In this process, where a server is as the test would have it."""
    words = ["run", "--backend", "redis", "--nemesis", "none", "--workload", "mutex", *options]
    try:
        code = main([*words, "--runtime", runtime, "--out", str(out)], standalone_mode=False)
    except LockcheckError as error:  # as the command line tells it
        print_error(error.message, error.cure)
        return error.exit_code
    assert isinstance(code, int)
    return code


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
    assert ("exited before" in cause) if node == AGENT else ("exited by itself" in cause)
    assert "cure:" in cure
    assert "Traceback" not in errors
    assert cause.removeprefix("lockcheck: ")[-30:] in (
        (tmp_path / "out" / run_id / "verdict.json").read_text()
    )
    assert traces_of(run_id, runtime) == []
