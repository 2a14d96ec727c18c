"""The local runtime, as root, at another user's home."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.running import lockcheck, need

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
