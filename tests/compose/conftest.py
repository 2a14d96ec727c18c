"""A Docker engine with our images in it; skipped, and said why, where none answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import docker
import pytest

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
