"""A client: a process of its own on a node of its own. `python -m lockcheck.client.worker DIR`

It creates `ready` in DIR, waits there for `worker.json`, opens its lock, creates `open`, waits for
`go`, writes `history.jsonl`, and leaves at SIGTERM when its section is over; then it creates
`done`. It is the same in both runtimes: nothing here knows where it runs. The folder `aims` in DIR
is the nemesis's: see `client/aims.py`.

A client that was killed may be restarted; LOCKCHECK_GENERATION says how often that happened. It is
another client then, with other processes, marks and choices, and appends to the same history.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from _thread import start_new_thread
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec

from lockcheck.backends import BACKENDS, Backend
from lockcheck.backends.base import Lock, LockSettings
from lockcheck.backends.program import ClientProgram
from lockcheck.client.aims import AIMS
from lockcheck.client.recorder import A_LIFE, Recorder, stall_ms
from lockcheck.client.session import Session
from lockcheck.errors import LockcheckError, is_out_of_space
from lockcheck.history import Event, EventWriter
from lockcheck.servers.base import Clock
from lockcheck.servers.wire import Address
from lockcheck.storage import open_storage
from lockcheck.storage.base import Guard
from lockcheck.workloads import WORKLOADS

READY, ORDERS, OPEN, GO = "ready", "worker.json", "open", "go"
HISTORY, DONE = "history.jsonl", "done"
FULL = "full"  # `ready`, renamed: that is possible where not a byte more can be written
OUTPUT = "output.log"
GENERATION = "LOCKCHECK_GENERATION"
TICK_S = 0.005
T = TypeVar("T")


class StorageAt(msgspec.Struct, frozen=True):
    kind: str
    address: Address


class WorkerOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What a client needs of a run. The lock and the workload are imported by their names."""

    node: str
    index: int
    clients: int
    lock: str
    workload: str
    servers: tuple[Address, ...]
    storage: StorageAt | None  # None: there is none, or the lock's own server holds the data
    guard: Guard
    keys: tuple[str, ...]
    ttl_ms: int
    think_ms: tuple[float, float]
    check_validity: bool
    lease_clock: Clock
    seed: int
    program: ClientProgram | None = None  # a user's own, whose lock it is
    promises: tuple[str, ...] = ()  # of that


class Go(msgspec.Struct, frozen=True):
    """The run begins."""

    origin_ns: int  # of the history's time, on the host's monotonic clock


class ClientHistory(EventWriter):
    """An event that is missing makes the others untrue: the client ends with the first one that
    cannot be written, whichever of its threads that befalls."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        super().__init__(folder / HISTORY)

    def write(self, event: Event) -> None:
        try:
            super().write(event)
        except OSError as error:
            try:
                if is_out_of_space(error):
                    (self._folder / READY).rename(self._folder / FULL)
                os.write(2, f"its history cannot be written: {error.strerror}\n".encode())
            finally:
                os._exit(1)


def await_file(path: Path, kind: type[T], stopping: threading.Event) -> T | None:
    """The file appears whole, by a rename. None if the run is over before it begins."""
    while not path.exists():
        if stopping.wait(0.01):
            return None
    return msgspec.json.decode(path.read_bytes(), type=kind)


def note_stalls(recorder: Recorder, stopping: threading.Event) -> None:
    """A tick that comes late is time in which this process did not run, for whatever reason."""
    last = time.monotonic()
    while not stopping.wait(TICK_S):
        now = time.monotonic()
        late_ms = (now - last - TICK_S) * 1000
        recorder.stalled_if_long(late_ms)  # without the tick: for so long it certainly did not run
        last = now


def opened(orders: WorkerOrders, settings: LockSettings) -> tuple[Backend, Lock]:
    """The lock of its orders, and this client's end of it."""
    if orders.program is None:
        backend = BACKENDS[orders.lock]
    else:
        from lockcheck.backends.program.words import backend_of

        backend = backend_of(orders.lock, orders.program, "", orders.promises)
    return backend, backend.connect(orders.servers, settings)


def serve(folder: Path, stopping: threading.Event, generation: int) -> None:
    (folder / AIMS).mkdir(exist_ok=True)
    (folder / READY).touch()
    orders = await_file(folder / ORDERS, WorkerOrders, stopping)
    if orders is None:
        return
    life = f"/{generation}" if generation else ""
    choices = random.Random(f"{orders.seed}/{orders.node}{life}")
    settings = LockSettings(orders.node, orders.ttl_ms, choices, orders.lease_clock)
    backend, lock = opened(orders, settings)
    (folder / OPEN).touch()
    go = await_file(folder / GO, Go, stopping)
    if go is None:
        lock.close()
        return
    recorder = Recorder(
        ClientHistory(folder),
        orders.node,
        orders.index,
        orders.clients,
        origin_ns=go.origin_ns,
        stall_ms=stall_ms(orders.ttl_ms),
        generation=generation,
    )
    at = orders.storage
    opened_session = Session(
        backend=backend,
        lock=lock,
        storage=open_storage(at.kind, at.address, orders.guard) if at else None,
        settings=settings,
        recorder=recorder,
        stopping=stopping,
        keys=orders.keys,
        think_ms=orders.think_ms,
        check_validity=orders.check_validity,
        aims=folder / AIMS,
        marks=A_LIFE * generation,
    )
    ticking_over = threading.Event()
    ticker = threading.Thread(target=note_stalls, args=(recorder, ticking_over), daemon=True)
    ticker.start()
    with closing(opened_session) as session:
        WORKLOADS[orders.workload].run(session)
    ticking_over.set()
    ticker.join()
    recorder.close()


def leave_at_sigterm(stopping: threading.Event) -> None:
    """By another thread: this one may be waiting for the event, and hold its lock."""
    signal.signal(signal.SIGTERM, lambda _signal, _frame: start_new_thread(stopping.set, ()))


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    output = os.open(folder / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    stopping = threading.Event()
    leave_at_sigterm(stopping)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command line to handle
    try:
        serve(folder, stopping, int(os.environ.get(GENERATION, "0")))
    except LockcheckError as error:
        os.write(2, f"{error.message}\ncure: {error.cure}\n".encode())
        sys.exit(1)
    (folder / DONE).touch()


if __name__ == "__main__":
    main()
