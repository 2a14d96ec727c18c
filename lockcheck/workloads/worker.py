"""A client: a process of its own on a node of its own. `python -m lockcheck.workloads.worker DIR`

It says `ready` in DIR and waits there for `worker.json` (the go), writes `history.jsonl` as it
goes, and leaves at SIGTERM when the section that it is in is over; `done` says that it left like
this. The same in both runtimes: nothing here knows where it runs.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from lockcheck.backends import BACKENDS
from lockcheck.backends.base import LockSettings
from lockcheck.storage import Guard, Storage
from lockcheck.wire import Address
from lockcheck.workloads import WORKLOADS
from lockcheck.workloads.recorder import Recorder, stall_ms
from lockcheck.workloads.session import SectionOver, Session

READY, ORDERS, HISTORY, DONE = "ready", "worker.json", "history.jsonl", "done"
OUTPUT = "output.log"
TICK_S = 0.005


class WorkerOrders(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    index: int
    clients: int
    backend: str
    servers: tuple[Address, ...]
    storage: Address | None
    workload: str
    keys: tuple[str, ...]
    guard: Guard
    ttl_ms: int
    think_ms: float
    check_validity: bool
    seed: int
    origin_ns: int  # of the history's time, on the host's monotonic clock


def await_orders(folder: Path, stopping: threading.Event) -> WorkerOrders | None:
    """The file appears whole, by a rename. None where the run was over before it began."""
    orders = folder / ORDERS
    (folder / READY).touch()
    while not orders.exists():
        if stopping.wait(0.01):
            return None
    return msgspec.json.decode(orders.read_bytes(), type=WorkerOrders)


def note_stalls(recorder: Recorder, stopping: threading.Event) -> None:
    """A tick that comes late is time in which this process did not run, whoever was the cause."""
    last = time.monotonic()
    while not stopping.wait(TICK_S):
        now = time.monotonic()
        late_ms = (now - last - TICK_S) * 1000
        recorder.stalled_if_long(late_ms)  # without the tick: so long it certainly did not run
        last = now


def open_session(orders: WorkerOrders, recorder: Recorder, stopping: threading.Event) -> Session:
    choices = random.Random(f"{orders.seed}/{orders.node}")
    return Session(
        backend=BACKENDS[orders.backend],
        servers=orders.servers,
        storage=Storage(orders.storage, orders.guard) if orders.storage else None,
        settings=LockSettings(orders.node, orders.ttl_ms, choices),
        recorder=recorder,
        stopping=stopping,
        think_ms=orders.think_ms,
        check_validity=orders.check_validity,
    )


def work(session: Session, orders: WorkerOrders) -> None:
    section = WORKLOADS[orders.workload].section
    while not session.stopping.is_set():
        held = session.try_acquire(session.settings.choices.choice(orders.keys))
        if held is not None:
            process = session.recorder.process
            with suppress(SectionOver):  # the history says why
                section(session, held)
            if session.recorder.process == process:  # a retired one leaves the lock to its lease
                session.release(held)
        session.rest()


def serve(folder: Path, stopping: threading.Event) -> None:
    orders = await_orders(folder, stopping)
    if orders is None:
        return
    recorder = Recorder(
        folder / HISTORY,
        orders.node,
        orders.index,
        orders.clients,
        origin_ns=orders.origin_ns,
        stall_ms=stall_ms(orders.ttl_ms),
    )
    ticking_over = threading.Event()
    ticker = threading.Thread(target=note_stalls, args=(recorder, ticking_over), daemon=True)
    ticker.start()
    work(open_session(orders, recorder, stopping), orders)
    ticking_over.set()
    ticker.join()
    recorder.close()


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    output = os.open(folder / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda _signal, _frame: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command line to handle
    serve(folder, stopping)
    (folder / DONE).touch()


if __name__ == "__main__":
    main()
