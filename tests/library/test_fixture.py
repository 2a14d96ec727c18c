"""The fixture for pytest in a user's suite: what it starts, skips, writes and leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import need, traces_of

SUITE = """
import lockcheck, redis

def lock_of(cluster, node):
    host, port = cluster.forward("r1", via=node)
    return redis.Redis(host, port, socket_timeout=2, retry=None).lock("orders", timeout=30)

def hold(cluster, node, at_once=False):
    lock = lock_of(cluster, node)
    with cluster.log.operation(node, "acquire", "orders") as answer:
        if not at_once and not lock.acquire(blocking=False):
            answer.refused()
    return lock

def release(cluster, node, lock):
    with cluster.log.operation(node, "release", "orders") as answer:
        if lock is None:
            answer.released("unsaid")
        else:
            lock.release()

def test_a_right_lock(lockcheck_cluster):
    cluster = lockcheck_cluster("redis*2", clients=2)
    assert cluster.servers == ("r1", "r2")
    for node in cluster.clients:
        release(cluster, node, hold(cluster, node))
    judgement = cluster.log.judge(ttl_ms=30_000)
    assert judgement.require_ok() is judgement
    print("ID", cluster.folder.name)

def test_no_lock_at_all(lockcheck_cluster):
    print("ID", lockcheck_cluster("redis").folder.name)
    cluster = lockcheck_cluster("redis", clients=2)
    print("ID", cluster.folder.name)
    mine = hold(cluster, "c1")
    with cluster.faults.partition("c1"):
        hold(cluster, "c2", at_once=True)  # without a look at the server
    release(cluster, "c2", None)
    release(cluster, "c1", mine)
    cluster.log.judge(ttl_ms=30_000).require_ok()

def test_one_that_breaks(lockcheck_cluster):
    print("ID", lockcheck_cluster("redis").folder.name)
    assert not "here"
"""


def run(
    folder: Path, suite: str, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(suite)
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-rA",
            f"--basetemp={folder / 'tmp'}",
            *options,
        ],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.cluster
def test_a_suite_passes_fails_with_the_story_and_leaves_nothing(tmp_path: Path) -> None:
    need("local")
    pages = tmp_path / "lockcheck-pages"
    stale = pages / "test_it.py-test_a_right_lock.html"
    pages.mkdir()
    stale.touch()
    done = run(tmp_path, SUITE, "-W", "error", LOCKCHECK_RUN_RUNTIME="local")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 1 passed" in done.stdout
    [page] = pages.iterdir()
    assert page.name == "test_it.py-test_no_lock_at_all-2.html"
    assert f"report         {page}" in done.stdout
    assert "cluster.log.judge(ttl_ms=30_000).require_ok()\nE       AssertionError: VIOLATION" in (
        done.stdout
    )
    assert (
        "c2  was granted orders (lease 30.0 s), while c1 still held it: two holders" in done.stdout
    )
    assert '<h2 id="versions">' in page.read_text()
    ids = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ID ")]
    assert len(ids) == 4
    assert [trace for each in ids for trace in traces_of(each, "local")] == []
    logs = tmp_path.glob("tmp/*/2*/nodes/r1/output.log")
    assert {path.parents[2].name for path in logs} == set(ids)


WITHOUT = """
def test_it(lockcheck_cluster):
    lockcheck_cluster("redis", runtime="docker")
"""
NO_ENGINE = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}


def test_where_nothing_runs_it_skips_with_the_reason_or_fails(tmp_path: Path) -> None:
    skipped = run(tmp_path, WITHOUT, **NO_ENGINE)
    assert skipped.returncode == 0, skipped.stdout + skipped.stderr
    assert "SKIPPED [1]" in skipped.stdout
    assert "lockcheck: the docker runtime cannot run here: " in skipped.stdout
    failed = run(tmp_path, WITHOUT, "-o", "lockcheck_no_runtime=fail", **NO_ENGINE)
    assert failed.returncode == 1
    assert "NoRuntimeError: the docker runtime cannot run here" in failed.stdout
    wrong = run(tmp_path, WITHOUT, "-o", "lockcheck_no_runtime=perhaps")
    assert "lockcheck_no_runtime = perhaps: choose from skip, fail" in wrong.stderr


def test_a_mistake_is_no_missing_runtime(tmp_path: Path) -> None:
    done = run(tmp_path, WITHOUT.replace('"redis"', '"reddis"'))
    assert done.returncode == 1
    assert "unknown server 'reddis'" in done.stdout


IDLE = """
import sys

def test_nothing_of_it_was_imported():
    ours = sorted(name for name in sys.modules if name.startswith("lockcheck"))
    assert ours == ["lockcheck", "lockcheck.pytest_plugin"]
    assert not {"numpy", "msgspec", "rich", "redis"} & sys.modules.keys()
"""


def test_who_does_not_use_it_does_not_load_it(tmp_path: Path) -> None:
    done = run(tmp_path, IDLE, "-W", "error")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "lockcheck-pages").exists()
    assert "lockcheck" not in run(tmp_path, IDLE, "-p", "no:lockcheck", "--fixtures").stdout
