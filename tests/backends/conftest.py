"""Servers that several files of tests share: started once, and only if one of them asks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from lockcheck.servers.wire import Address
from tests.backends.servers import etcd, zookeeper


@pytest.fixture(scope="session")
def etcd_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Address, subprocess.Popen[bytes]]]:
    with etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Address, subprocess.Popen[bytes]]]:
    with zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


@pytest.fixture
def ttl_ms() -> int:
    """Longer than any machine stands still; a test in which one runs out asks for another."""
    return 10_000
