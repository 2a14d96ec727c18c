"""What a host refuses, in words that name it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import requests
import urllib3

from lockcheck.compose.docker.engine import engine_trouble
from lockcheck.compose.local import runtime
from lockcheck.errors import ClusterError


def test_a_full_folder_is_no_lost_engine() -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "/full/compose.json")
    with pytest.raises(ClusterError, match="no space is left for /full"), engine_trouble("writing"):
        raise full
    with pytest.raises(ClusterError, match="lost the Docker engine"), engine_trouble("asking"):
        raise ConnectionResetError


@pytest.mark.parametrize(
    "error", [requests.Timeout("slow"), urllib3.exceptions.ProtocolError("cut")], ids=repr
)
def test_errors_of_the_libraries_below_the_docker_client_name_the_engine(error: Exception) -> None:
    with pytest.raises(ClusterError, match="lost the Docker engine"), engine_trouble("asking"):
        raise error


def test_an_unshare_that_hangs_gives_no_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = tmp_path / "unshare"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(runtime, "PROBE_S", 0.1)
    runtime.isolation.cache_clear()
    try:
        assert "gives no namespaces" in runtime.LocalRuntime().why_not()
    finally:
        runtime.isolation.cache_clear()
