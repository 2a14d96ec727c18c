"""The local runtime among other users: root at another one's home, and a run without a umask."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.running import LOCKCHECK, lockcheck, need

CALLER = 4711
OK, UNKNOWN = 0, 3


@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_who_calls_sudo_has_results_in_a_home_that_is_closed_to_others(tmp_path: Path) -> None:
    """Also of a server that gives up root's rights, and so could not pass that folder."""
    need("local", "postgres")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    os.chown(home, CALLER, CALLER)
    run = ("run", "--backend", "postgres-advisory", "--runtime", "local", "--nemesis", "none")
    out = ("--time-limit", "3s", "--out", str(home / "results"))
    refused = lockcheck(*run, *out)
    assert f"{home} belongs to another user (uid {CALLER})" in refused.stderr
    done = lockcheck(*run, *out, variables={"SUDO_UID": str(CALLER)})
    assert done.returncode in {OK, UNKNOWN}, done.stderr
    assert "nodes ready" in done.stderr


@pytest.mark.cluster
def test_nothing_of_a_run_may_be_written_by_everybody_whatever_the_umask(tmp_path: Path) -> None:
    need("local")
    run = [*LOCKCHECK, "run", "--backend", "redis", "--runtime", "local", "--nemesis", "none"]
    out = tmp_path / "a" / "results"
    done = subprocess.run(
        [*run, "--time-limit", "2s", "--out", str(out)],
        umask=0,
        check=False,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode in {OK, UNKNOWN}, done.stderr
    made = [path for path in (tmp_path / "a").rglob("*") if not path.is_symlink()]
    assert any(path.name == "agent.log" for path in made)
    assert [path for path in made if path.stat().st_mode & 0o002] == []
