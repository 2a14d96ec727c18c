"""A client as a process, against a real server: its files, its end, its second life."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from lockcheck.client.aims import AIMS
from lockcheck.client.recorder import A_LIFE
from lockcheck.client.worker import (
    DONE,
    GENERATION,
    HISTORY,
    ORDERS,
    READY,
    WorkerOrders,
)
from lockcheck.config import RunConfig
from lockcheck.history import Event, EventType, F
from lockcheck.history.files import read_events
from lockcheck.servers.wire import Address
from tests.waiting import wait_for


def start(folder: Path, generation: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "lockcheck.client.worker", str(folder)],
        env={**os.environ, GENERATION: str(generation)},
    )


def give_orders(folder: Path, redis: Address) -> None:
    orders = WorkerOrders(
        node="c2",
        index=1,
        config=RunConfig(backend="redis", seed=1, clients=5),
        servers=(redis,),
        storage=redis,
        origin_ns=time.monotonic_ns(),
    )
    (folder / "part").write_bytes(msgspec.json.encode(orders))
    (folder / "part").rename(folder / ORDERS)


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
