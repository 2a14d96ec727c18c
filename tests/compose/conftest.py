"""A Docker engine with our images in it, or none (with the reason to skip); a host with nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from lockcheck.compose.docker.compose_binary import ENVIRONMENT as COMPOSE_VARIABLE
from lockcheck.compose.docker.engine import connect
from lockcheck.compose.docker.runtime import DockerRuntime
from tests.running import need


@pytest.fixture
def engine() -> Iterator[docker.DockerClient]:
    need("docker")
    with closing(connect()) as client:
        yield client


@pytest.fixture
def runtime(engine: docker.DockerClient) -> DockerRuntime:
    return DockerRuntime()


@pytest.fixture
def bare_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No program on PATH but those of this folder, and an empty cache."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(COMPOSE_VARIABLE, raising=False)
    return programs
