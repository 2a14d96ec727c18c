"""A user's own suite of tests, as pytest runs it: what a cluster leaves in its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.running import RUNTIMES, docker_things_of, need, traces_of
from tests.waiting import wait_for

STANDS = """
import lockcheck, pytest, time
from pathlib import Path

@pytest.fixture(scope="module")
def cluster():
    with lockcheck.cluster("redis", storage="redis", folder=Path("out")) as cluster:
        yield cluster

def test_one(cluster):
    cluster.run("c1", ["sleep", "600"])
    with cluster.faults.pause("c1"):
        Path("begun").touch()
        time.sleep(600)

def test_another():
    Path("went-on").touch()
"""
FORKS = """
import lockcheck, os, signal, time

def test_a_fork_dies_of_the_signal_and_harms_no_cluster():
    with lockcheck.cluster("redis") as cluster:
        ready, begun = os.pipe()
        if not (child := os.fork()):
            os.write(begun, b"x")
            time.sleep(600)
        assert os.read(ready, 1)
        os.kill(child, signal.SIGTERM)
        assert os.waitpid(child, 0)[1] == signal.SIGTERM
        assert cluster.run("c1", ["true"]).wait() == 0
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
"""

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")

DESCRIPTORS = """
import gc, os, lockcheck, redis

def use():
    with lockcheck.cluster("redis") as cluster:
        assert cluster.run("c1", ["true"]).wait() == 0
        way = cluster.forward("r1", via="c1")
        with redis.Redis(*way) as client:
            assert client.ping()
        left = redis.Redis(*way)  # its connection ends with the cluster
        assert left.ping()
    left.close()

def test_nothing_stays_open():
    use()  # imports, and whatever is kept for the next time
    before = len(os.listdir("/proc/self/fd"))
    use()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
"""


@contextmanager
def under_way(suite: str, runtime: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    (folder / "test_it.py").write_text(suite)
    process = subprocess.Popen(
        PYTEST,
        cwd=folder,
        env={**os.environ, "LOCKCHECK_RUN_RUNTIME": runtime},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_signal_ends_it_as_before_and_its_cluster_first(
    runtime: str, number: signal.Signals, tmp_path: Path
) -> None:
    need(runtime)
    with under_way(STANDS, runtime, tmp_path) as process:
        wait_for((tmp_path / "begun").exists, "a fault has struck")
        [run_id] = [path.name for path in (tmp_path / "out").glob("2*")]
        assert traces_of(run_id, runtime)
        for _ in range(3):  # some send it until the process is gone
            process.send_signal(number)
        process.communicate(timeout=120)
    assert process.returncode == -number
    assert traces_of(run_id, runtime) == []
    assert (tmp_path / "out" / run_id / "nodes" / "r1" / "output.log").exists()
    assert not (tmp_path / "went-on").exists()


@pytest.mark.cluster
@pytest.mark.docker
def test_a_signal_while_it_comes_up_leaves_nothing(tmp_path: Path) -> None:
    need("docker")
    with under_way(STANDS, "docker", tmp_path) as process:
        wait_for(lambda: list(tmp_path.glob("out/2*")), "it has begun")
        [run_id] = [path.name for path in (tmp_path / "out").glob("2*")]
        wait_for(lambda: docker_things_of(run_id), "there is something of it in the engine")
        for _ in range(3):
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == -signal.SIGTERM
    assert traces_of(run_id, "docker") == []


@pytest.mark.cluster
def test_a_fork_of_a_test_dies_of_the_signal_alone(tmp_path: Path) -> None:
    need("local")
    with under_way(FORKS, "local", tmp_path) as process:
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_it_passes_with_warnings_as_errors(runtime: str, tmp_path: Path) -> None:
    need(runtime)
    (tmp_path / "test_it.py").write_text(DESCRIPTORS)
    done = subprocess.run(
        [*PYTEST, "-W", "error"],
        cwd=tmp_path,
        env={**os.environ, "LOCKCHECK_RUN_RUNTIME": runtime},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Exception ignored" not in done.stderr
