"""Three kinds of fault at once, in a real run: proven, and healed on the ways out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from lockcheck.history import FaultSpan, Operation, read_history
from lockcheck.nemesis import parse_nemesis
from tests.running import (
    CLUSTER_ERROR,
    LOCKCHECK,
    RUNTIMES,
    links_of_the_host,
    lockcheck,
    need,
    run_under_way,
    traces_of,
)
from tests.test_ordinary_user import as_nobody, everybodys_folder
from tests.waiting import wait_for

__all__ = ["everybodys_folder"]  # a fixture

AT_ONCE = ("pause:holder,for=1m", "partition:minority,for=1m", "kill:client,restart=1m")


def nemesis_events(folder: Path) -> list[dict[str, object]]:
    history = folder / "nodes" / "nemesis.jsonl"
    whole = history.read_text().rpartition("\n")[0] if history.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


def proven(folder: Path) -> set[object]:
    return {e["f"] for e in nemesis_events(folder) if e["type"] == "ok"} - {"heal", "quiet"}


@pytest.mark.cluster
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_kill_partition_and_pause_at_once_are_healed_when_the_run_is_cut_short(
    end: signal.Signals, tmp_path: Path
) -> None:
    need("local")
    links = links_of_the_host()
    options = ["--backend", "redlock"]
    options += [word for text in AT_ONCE for word in ("--nemesis", text)]
    with run_under_way(tmp_path / "out", "local", *options) as (process, run_id):
        folder = tmp_path / "out" / run_id
        wait_for(lambda: len(proven(folder)) == 3, "all three are active")
        process.send_signal(end)
        process.communicate(timeout=60)
    assert process.returncode == 130
    events = nemesis_events(folder)
    begun = [e["fault"] for e in events if e["type"] == "invoke" and e["f"] != "heal"]
    assert len(begun) == 3
    healing = [e["fault"] for e in events if (e["type"], e["f"]) == ("invoke", "heal")]
    assert list(dict.fromkeys(healing)) == begun[::-1]  # the last one first, none waits for another
    healed = [e["fault"] for e in events if (e["type"], e["f"]) == ("ok", "heal")]
    assert sorted(healed, key=str) == sorted(begun, key=str)
    assert traces_of(run_id, "local") == []
    assert links_of_the_host() == links


@pytest.mark.cluster
def test_an_ordinary_user_can_inject_them_all(everybodys_folder: Path, tmp_path: Path) -> None:
    need("local")
    out = everybodys_folder
    command = [*LOCKCHECK, "run", "--backend", "redlock", "--runtime", "local", "--out", str(out)]
    command += ["--time-limit", "8s", "--ttl", "500ms", "--seed", "1", "--no-stop-on-violation"]
    command += ["--nemesis", "kill:minority,restart=500ms then partition:holder"]
    command += ["--nemesis", "pause:client,for=500ms then swizzle:client,for=300ms,every=5ms"]
    command += ["--nemesis", "slow:client,for=500ms,loss=30 then slow:server,for=500ms"]
    command += ["--nemesis", "clock:server,for=300ms"]
    if os.geteuid() == 0:
        command = as_nobody(command, out, tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out)
    if "gives no namespaces" in done.stderr:
        pytest.skip("this system gives ordinary users no namespaces")
    assert done.returncode in (0, 1, 3), done.stderr
    [folder] = [path for path in out.iterdir() if not path.is_symlink()]
    assert proven(folder) == {"kill", "partition", "pause", "swizzle", "slow", "clock"}
    said_of_faults = (event for event in nemesis_events(folder) if event["process"] == "nemesis")
    assert not [event for event in said_of_faults if event["type"] == "info"]


@pytest.mark.cluster
def test_a_pause_strikes_between_the_look_at_the_lease_and_the_write(tmp_path: Path) -> None:
    need("local")
    options = ["--runtime", "local", "--seed", "1", "--out", str(tmp_path), "--ttl", "500ms"]
    options += ["--time-limit", "4s", "--nemesis", "pause", "--check-validity"]
    done = lockcheck("run", "--json", "--backend", "redis", *options)
    result = json.loads(done.stdout)
    assert result["verdict"] == "violation", done.stdout
    assert {finding["blame"] for finding in result["findings"]} == {"holder"}
    history = read_history(Path(result["report"]).parent / "history.jsonl")
    struck = [fault for fault in history.faults if fault.proven_ns is not None]
    assert struck
    for fault in struck:
        [write] = [o for o in history.operations if is_under_way(o, fault)]
        assert write.f == "write"


def is_under_way(operation: Operation, fault: FaultSpan) -> bool:
    """Asked by the client that was struck before that, and answered after it was healed."""
    assert fault.since_ns is not None
    assert fault.healed_ns is not None
    until_ns = operation.end_ns or fault.healed_ns
    mine = operation.node in fault.nodes
    return mine and operation.start_ns < fault.since_ns and until_ns > fault.since_ns


LATE = "slow:client,delay=100ms"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_the_kernel_lacks_is_refused_before_the_clients_begin(
    runtime: str, tmp_path: Path
) -> None:
    need(runtime)
    (late,) = parse_nemesis(LATE)
    lacks = os.geteuid() == 0 and late.kind.lacks(late)
    if not lacks:
        pytest.skip("this kernel can do it, or only a run can tell")
    options = ("--backend", "redis", "--runtime", runtime, "--nemesis", LATE)
    done = lockcheck("run", *options, "--out", str(tmp_path))
    assert done.returncode == CLUSTER_ERROR
    assert f"{LATE} is not possible: {lacks.reason}" in " ".join(done.stderr.split())
    assert "sch_netem" in done.stderr
    [folder] = [path for path in tmp_path.iterdir() if not path.is_symlink()]
    assert not nemesis_events(folder)
    assert traces_of(folder.name, runtime) == []
