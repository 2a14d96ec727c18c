"""However a run ends, nothing stays that carries its id: no process, container, network, volume."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lockcheck import read_record
from tests.running import (
    LOCKCHECK,
    RUNTIMES,
    children_of,
    docker_things_of,
    links_of_the_host,
    lockcheck,
    need,
    on_a_terminal,
    run_under_way,
    stopped_clients,
    traces_of,
)
from tests.waiting import wait_for

VIOLATION, UNKNOWN = 1, 3

ENDS: dict[str, signal.Signals] = {
    "Ctrl-C": signal.SIGINT,
    "SIGTERM": signal.SIGTERM,
    "SIGHUP": signal.SIGHUP,
}


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("end", ENDS)
def test_an_interrupted_run_heals_cleans_and_reports(
    end: str, runtime: str, tmp_path: Path
) -> None:
    need(runtime)
    links = links_of_the_host()
    options = ("--backend", "redis", "--nemesis", "pause", "--ttl", "20s")
    with run_under_way(tmp_path / "out", runtime, *options) as (process, run_id):
        wait_for(stopped_clients, "a client is paused")
        process.send_signal(ENDS[end])
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert not stopped_clients()
    assert traces_of(run_id, runtime) == []
    if runtime == "local":
        assert links_of_the_host() == links
    folder = tmp_path / "out" / run_id
    assert "interrupted" in (folder / "report.html").read_text()
    assert "interrupted" in output
    assert read_record(folder).exit_code == 130
    assert lockcheck("check", str(folder)).returncode in (1, 3)  # cut short: never ok
    healed = [
        event
        for line in (folder / "history.jsonl").read_text().splitlines()
        if (event := json.loads(line))["process"] == "nemesis" and event["f"] == "heal"
    ]
    assert [event["type"] for event in healed] == ["invoke", "ok"]


@pytest.mark.cluster
@pytest.mark.parametrize("end", ENDS)
def test_a_signal_from_outside_of_its_pid_namespace_is_heard(end: str, tmp_path: Path) -> None:
    """As that of `docker stop`: the kernel shows no sender of it."""
    need("local")
    if os.geteuid() != 0:
        pytest.skip("making a PID namespace takes root")
    apart = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    options = ("--backend", "redis", "--nemesis", "pause", "--ttl", "20s")
    out = tmp_path / "out"
    with run_under_way(out, "local", *options, within=apart) as (process, run_id):
        wait_for(stopped_clients, "a client is paused")
        [first] = children_of(process.pid)
        os.kill(first, ENDS[end])
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert not stopped_clients()
    assert traces_of(run_id, "local") == []
    assert "interrupted" in (out / run_id / "report.html").read_text()


@pytest.mark.cluster
def test_a_terminal_that_hangs_up_ends_the_run(tmp_path: Path) -> None:
    """As where the window of `ssh -t HOST lockcheck run` is closed."""
    need("local")
    out = tmp_path / "out"
    command = [*LOCKCHECK, "run", "--runtime", "local", "--nemesis", "pause", "--ttl", "20s"]
    command += ["--backend", "redis", "--time-limit", "120s", "--out", str(out)]
    with on_a_terminal(command) as (process, hang_up):
        wait_for(stopped_clients, "a client is paused")
        hang_up()
        assert process.wait(60) == 130
    [run_id] = [path.name for path in out.iterdir() if not path.is_symlink()]
    assert not stopped_clients()
    assert traces_of(run_id, "local") == []
    assert "interrupted" in (out / run_id / "report.html").read_text()


@pytest.mark.docker
@pytest.mark.cluster
def test_a_burst_of_signals_while_it_comes_up_cuts_nothing_short(tmp_path: Path) -> None:
    need("docker")
    out = tmp_path / "out"
    command = [*LOCKCHECK, "run", "--runtime", "docker", "--backend", "redis", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        wait_for(lambda: list(out.glob("2*")), "the run has a folder")
        run_id = next(out.glob("2*")).name
        wait_for(lambda: docker_things_of(run_id), "there is something of it in the engine")
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    assert traces_of(run_id, "docker") == []
    assert "interrupted" in (out / run_id / "report.html").read_text()


@pytest.mark.cluster
def test_local_is_gone_by_itself_after_kill_9(tmp_path: Path) -> None:
    need("local")
    links = links_of_the_host()
    options = ("--backend", "redlock", "--nemesis", "pause", "--ttl", "20s")
    with run_under_way(tmp_path / "out", "local", *options) as (process, run_id):
        wait_for(stopped_clients, "a client is paused")
        process.kill()
        process.wait()
        wait_for(lambda: not traces_of(run_id, "local"), "nothing carries the run's id")
    assert links_of_the_host() == links
    assert read_record(tmp_path / "out" / run_id).verdict == "unknown"
    judged = lockcheck("check", str(tmp_path / "out" / run_id))  # from what each has written
    assert judged.returncode in {VIOLATION, UNKNOWN}, judged.stderr
    assert "The run was killed, or has not ended yet" in judged.stdout
    record = read_record(tmp_path / "out" / run_id)
    assert record.counts is not None
    assert record.exit_code is None


def clean() -> None:
    assert lockcheck("clean").returncode == 0


@pytest.mark.docker
@pytest.mark.cluster
def test_docker_heals_by_itself_after_kill_9_and_clean_removes_the_rest(tmp_path: Path) -> None:
    need("docker")
    options = ("--backend", "redlock", "--nemesis", "pause", "--ttl", "20s")
    with run_under_way(tmp_path / "out", "docker", *options) as (process, run_id):
        wait_for(stopped_clients, "a client is paused")
        process.kill()
        process.wait()
        wait_for(lambda: not stopped_clients(), "no client stays stopped")
        assert traces_of(run_id, "docker")
        wait_for(lambda: _cleaned(run_id), "clean removes what is left")


def _cleaned(run_id: str) -> bool:
    clean()
    return not traces_of(run_id, "docker")


@pytest.mark.docker
@pytest.mark.cluster
def test_the_next_docker_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    need("docker")
    options = ("--backend", "redis", "--nemesis", "none")
    with run_under_way(tmp_path / "out", "docker", *options) as (process, run_id):
        process.kill()
        process.wait()
        wait_for(lambda: not stopped_clients(), "no client stays stopped")
    done = lockcheck(
        *("run", "--backend", "redis", "--runtime", "docker", "--nemesis", "none"),
        *("--time-limit", "2s", "--out", str(tmp_path / "next")),
    )
    assert done.returncode in (0, 3), done.stderr
    assert traces_of(run_id, "docker") == []


@contextmanager
def small_disk(tmp_path: Path, size: str) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", f"size={size}", "lockcheck-test", str(disk))
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("this host mounts no tmpfs")
    try:
        yield disk
    finally:
        subprocess.run(("umount", str(disk)), check=True)


@pytest.mark.cluster
def test_a_disk_that_was_full_for_a_moment_is_named(tmp_path: Path) -> None:
    """There is room again at the end, but what the client wrote meanwhile is lost."""
    need("local")
    with small_disk(tmp_path, "4m") as disk:
        options = ("--backend", "redis", "--nemesis", "none")
        with run_under_way(disk / "out", "local", *options) as (process, run_id):
            wait_for(lambda: histories(disk / "out" / run_id), "clients write their histories")
            with suppress(OSError), (disk / "fill").open("wb", buffering=0) as fill:
                while True:
                    fill.write(bytes(4096))
            wait_for(lambda: list(disk.glob("out/2*/nodes/c*/full")), "a client found no space")
            (disk / "fill").unlink()
            process.communicate(timeout=60)
        done = (disk / "out.stderr").read_text()
        page = (disk / "out" / run_id / "report.html").read_text()
    assert process.returncode == 4, done
    assert re.search(
        r"c\d exited by itself during the run: no space was left for its history", done
    )
    assert "cure: make room" in done
    assert "no space was left for its history" in page
    assert traces_of(run_id, "local") == []


def histories(folder: Path) -> bool:
    return any(path.stat().st_size > 0 for path in folder.glob("nodes/c*/history.jsonl"))


@pytest.mark.cluster
def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    need("local")
    with small_disk(tmp_path, "300k") as disk:
        done = lockcheck(
            *("run", "--backend", "redis", "--nemesis", "pause", "--runtime", "local"),
            *("--time-limit", "60s", "--no-stop-on-violation", "--out", str(disk / "out")),
        )
        [folder] = [path for path in (disk / "out").iterdir() if not path.is_symlink()]
    assert done.returncode == 4, done.stderr
    assert "no space is left" in done.stderr
    assert "Traceback" not in done.stderr
    assert traces_of(folder.name, "local") == []
