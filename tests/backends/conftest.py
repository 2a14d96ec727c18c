"""The server that a file of tests is about, as its `SERVER` says: etcd and ZooKeeper are started
once for all files, any other for its file, each only if a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockcheck.servers.wire import Address
from tests.backends.servers import Started, etcd, zookeeper


@pytest.fixture(scope="session")
def etcd_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Started]:
    start = request.module.SERVER
    if start in (etcd, zookeeper):
        yield request.getfixturevalue(f"{start.__name__}_server")
        return
    with start(tmp_path_factory.mktemp(start.__name__)) as server:
        yield server


@pytest.fixture
def address(server: Started) -> Address:
    return server[0]


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


@pytest.fixture
def ttl_ms() -> int:
    """Longer than any machine stands still; a test in which one runs out asks for another."""
    return 10_000
