"""A client as a process, against a real server: its files, its end, its second life."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import msgspec

from lockcheck import backends
from lockcheck.backends import BACKENDS
from lockcheck.client.aims import AIMS
from lockcheck.client.recorder import A_LIFE
from lockcheck.client.worker import (
    DONE,
    GENERATION,
    GO,
    HISTORY,
    ORDERS,
    OUTPUT,
    READY,
    Go,
    StorageAt,
    WorkerOrders,
)
from lockcheck.history import Event, EventType, F
from lockcheck.history.files import read_events
from lockcheck.servers.base import Clock
from lockcheck.servers.wire import Address
from lockcheck.storage.base import Guard
from lockcheck.workloads import WORKLOADS
from tests.waiting import wait_for


def start(
    folder: Path, generation: int, *options: str, stderr: IO[str] | None = None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *options, "-m", "lockcheck.client.worker", str(folder)],
        env={**os.environ, GENERATION: str(generation)},
        stderr=stderr,
    )


def give_orders(folder: Path, redis: Address) -> None:
    orders = WorkerOrders(
        node="c2",
        index=1,
        clients=5,
        lock="redis",
        workload="register",
        servers=(redis,),
        storage=StorageAt("redis", redis),
        guard=Guard.NONE,
        keys=("k1",),
        ttl_ms=1000,
        think_ms=(5, 15),
        check_validity=False,
        lease_clock=Clock.MONOTONIC,
        seed=1,
    )
    for name, content in {ORDERS: orders, GO: Go(time.monotonic_ns())}.items():
        (folder / "part").write_bytes(msgspec.json.encode(content))
        (folder / "part").rename(folder / name)


def writes(folder: Path) -> list[Event]:
    events = read_events(folder / HISTORY, allow_torn_end=True)
    return [event for event in events if event.f == F.WRITE and event.type is EventType.OK]


def test_a_client_and_its_second_life(redis_address: Address, tmp_path: Path) -> None:
    folder = tmp_path / "c2"
    client = start(folder, 0)
    wait_for((folder / READY).exists, "it is ready")
    assert (folder / AIMS).is_dir()
    give_orders(folder, redis_address)
    wait_for(lambda: (folder / HISTORY).exists() and len(writes(folder)) > 2, "it works")
    client.kill()
    client.wait()
    assert not (folder / DONE).exists()
    before = writes(folder)

    client = start(folder, 1)
    wait_for(lambda: len(writes(folder)) > len(before) + 2, "its next life works")
    client.terminate()
    assert client.wait(30) == 0
    assert (folder / DONE).exists()
    after = writes(folder)[len(before) :]
    assert {event.process for event in before} == {1}
    assert {event.process for event in after} == {1 + 5 * A_LIFE}
    assert not {str(event.value) for event in before} & {str(event.value) for event in after}
    assert str(after[0].value) == f"v{A_LIFE + 1}-c2"


def test_a_client_imports_its_lock_its_workload_and_no_other(
    redis_address: Address, tmp_path: Path
) -> None:
    folder = tmp_path / "c2"
    with (tmp_path / "early.log").open("w") as early:  # until it has its own output
        client = start(folder, 0, "-v", stderr=early)
    wait_for((folder / READY).exists, "it is ready")
    give_orders(folder, redis_address)
    wait_for(lambda: (folder / HISTORY).exists() and len(writes(folder)) > 2, "it works")
    client.terminate()
    assert client.wait(30) == 0
    lines = (tmp_path / "early.log").read_text() + (folder / OUTPUT).read_text()
    imported = set(re.findall(r"^import '([\w.]+)' #", lines, re.MULTILINE))
    locks = {place.partition(":")[0] for place in lock_places()}
    assert imported & {f"lockcheck.backends.{place}" for place in locks} == {
        "lockcheck.backends.redis.redis_single"
    }
    assert imported & {f"lockcheck.workloads.{name}" for name in WORKLOADS} == {
        "lockcheck.workloads.register"
    }
    unwanted = ("lockcheck.nemesis", "lockcheck.config", "lockcheck.run", "lockcheck.checker")
    assert not [name for name in imported if name.startswith(unwanted)]


def lock_places() -> list[str]:
    """The modules of all locks, below their room."""
    entries = re.findall(r'": "([\w.]+:\w+)",', Path(backends.__file__ or "").read_text())
    assert len(entries) == len(BACKENDS)
    return entries


def test_a_client_that_has_to_leave_before_it_began(tmp_path: Path) -> None:
    client = start(tmp_path / "c1", 0)
    wait_for((tmp_path / "c1" / READY).exists, "it is ready")
    client.terminate()
    assert client.wait(30) == 0


TOLD_WHILE_IT_BEGINS_TO_WAIT = """
import os, signal, threading
from lockcheck.client.worker import leave_at_sigterm

stopping = threading.Event()
leave_at_sigterm(stopping)
with stopping._cond:  # as in the first and last steps of every wait for it
    os.kill(os.getpid(), signal.SIGTERM)
assert stopping.wait(30)
"""


def test_a_client_that_has_to_leave_while_it_begins_to_wait_leaves() -> None:
    subprocess.run([sys.executable, "-c", TOLD_WHILE_IT_BEGINS_TO_WAIT], check=True, timeout=60)
