"""What tests share: a real Redis on loopback, and how long hypothesis looks for an example."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lockcheck.compose.programs import PROGRAMS
from lockcheck.redis_node import RedisNode
from lockcheck.wire import Address, WireFailure
from tests.waiting import wait_for

# On a busy machine slow is no failure; and `tmp_path` may be used again.
LENIENT = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("lockcheck", LENIENT)
settings.register_profile("fuzz", LENIENT, max_examples=20_000)  # make fuzz
settings.load_profile("lockcheck")


@pytest.fixture
def redis_address(tmp_path: Path) -> Iterator[Address]:
    """A server of this test's own; the kernel chooses its port."""
    command = PROGRAMS["redis"].find()
    if command is None:
        pytest.skip(f"no Redis on this host: {PROGRAMS['redis'].cure}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = ("127.0.0.1", free.getsockname()[1])
    options = ("--port", str(address[1]), "--bind", "127.0.0.1", "--save", "")
    server = subprocess.Popen([*command, *options], cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: _answers(address), "the server answers")
        yield address
    finally:
        server.kill()
        server.wait()


def _answers(address: Address) -> bool:
    node = RedisNode(address, timeout_ms=1000)
    try:
        return node.call("PING") == "PONG"
    except WireFailure:
        return False
    finally:
        node.close()
