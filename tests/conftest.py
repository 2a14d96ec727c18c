"""What tests share: a real Redis on loopback, and how long hypothesis looks for an example."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lockcheck.servers.redis import REDIS, RedisNode
from lockcheck.servers.wire import Address, WireFailure
from tests.waiting import wait_for

# On a busy machine slow is no failure; and `tmp_path` may be used again.
LENIENT = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("lockcheck", LENIENT)
settings.register_profile("fuzz", LENIENT, max_examples=20_000)  # make fuzz
settings.load_profile("lockcheck")


# The first test that needs images builds them, and a busy machine takes minutes for that.
BUILDING_IMAGES_S = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("docker"):
            item.add_marker(pytest.mark.timeout(BUILDING_IMAGES_S))


# Under a shell's `&`, or nohup, these are ignored by whatever is started: tests send them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def redis_address(tmp_path: Path) -> Iterator[Address]:
    """A server of this test's own; the kernel chooses its port."""
    command = REDIS.find()
    if command is None:
        pytest.skip(f"no Redis on this host: {REDIS.cure}")
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
