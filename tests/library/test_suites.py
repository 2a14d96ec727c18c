"""A user's own suite of tests, as pytest runs it: what a cluster leaves in its process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import RUNTIMES, need

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")

DESCRIPTORS = """
import gc, os, lockcheck, redis

def use():
    with lockcheck.cluster("redis") as cluster:
        assert cluster.run("c1", ["true"]).wait() == 0
        with redis.Redis(*cluster.forward("r1", via="c1")) as client:
            assert client.ping()

def test_nothing_stays_open():
    use()  # imports, and whatever is kept for the next time
    before = len(os.listdir("/proc/self/fd"))
    use()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
"""


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
