"""Several clients in one process, with a lock and a register in memory: their real histories."""

from __future__ import annotations

import random
import threading
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from lockcheck.backends.base import Backend, Claim, Grant, Lock, LockSettings, Mode, Promises
from lockcheck.client.recorder import Recorder
from lockcheck.client.session import Session
from lockcheck.history import EventWriter, F, History, Refusal, Terms
from lockcheck.history.event import terms_event
from lockcheck.history.files import merge_event_files
from lockcheck.servers.wire import ErrorRow, Refused
from lockcheck.storage.base import Ask, Served, Storage
from lockcheck.workloads import Workload
from tests.checker.dsl import ledger_of
from tests.waiting import wait_for

CLIENTS, TTL_MS = 5, 60_000


@dataclass
class Memory:
    """What all clients share: who holds which lock, and the registers."""

    promises: Promises
    holding: dict[str, Counter[str]] = field(default_factory=dict)
    mode: dict[str, Mode] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)
    served: int = 0
    one_by_one: threading.Lock = field(default_factory=threading.Lock)

    def let_in(self, key: str, who: str, mode: Mode) -> bool:
        with self.one_by_one:
            holding = self.holding.setdefault(key, Counter())
            if not self._may_enter(holding, key, who, mode):
                return False
            holding[who] += 1
            self.mode[key] = mode
            return True

    def _may_enter(self, holding: Counter[str], key: str, who: str, mode: Mode) -> bool:
        if not holding:
            return True
        again = self.promises.reentrant and who in holding
        together = self.promises.shared and {mode, self.mode[key]} == {Mode.SHARED}
        return again or together or len(holding) < self.promises.permits

    def leave(self, key: str, who: str) -> None:
        with self.one_by_one:
            self.holding[key][who] -= 1
            self.holding[key] += Counter()  # drops who has left as often as it entered

    def serve(self, ask: Ask) -> Served:
        with self.one_by_one:
            self.served += 1
            if ask.f == F.WRITE:
                self.values[ask.key] = ask.value
                return Served(self.served, "", None)
            value = self.values.get(ask.key)
            return Served(self.served, "", value if isinstance(value, str) else None)


@dataclass
class MemoryLock(Lock):
    memory: Memory
    owner: str

    def acquire(self, claim: Claim) -> Grant:
        if not self.memory.let_in(claim.key, self.owner, claim.mode):
            raise Refused(Refusal.HELD)
        return Grant(claim.key, None, valid_ms=TTL_MS, mode=claim.mode)

    def release(self, grant: Grant) -> object:
        self.memory.leave(grant.key, self.owner)
        return {"removed": 1}

    def close(self) -> None: ...


@dataclass
class MemoryStorage(Storage):
    memory_of_all: Memory
    errors: tuple[ErrorRow, ...] = ()

    def serve(self, ask: Ask) -> Served:
        return self.memory_of_all.serve(ask)

    def ledger(self) -> list[Ask]:
        return []

    def close(self) -> None: ...


def at_work(
    workload: Workload,
    promises: Promises,
    folder: Path,
    often: int = 60,
) -> History:
    """Until they were let in `often` enough."""
    memory = Memory(promises)
    backend = Backend(
        name="memory",
        summary="in memory",
        promises=promises,
        servers=(),
        connect=lambda _servers, settings: MemoryLock(memory, settings.owner),
        errors=(),
        retry_ms=(1, 10),
        workload=workload.name,
    )
    stopping = threading.Event()
    paths = [folder / f"c{number}.jsonl" for number in range(1, CLIENTS + 1)]
    clients = [
        threading.Thread(target=_Client(workload, backend, memory, stopping).live, args=(path, n))
        for n, path in enumerate(paths)
    ]
    for client in clients:
        client.start()
    try:
        wait_for(lambda: _answered(paths, F.ACQUIRE) >= often, "they were let in often enough")
        if workload.stores:
            wait_for(lambda: _answered(paths, F.WRITE) >= often / 4, "they wrote often enough")
    finally:
        stopping.set()
        for client in clients:
            client.join(60)
    terms = Terms(
        backend="memory",
        workload=workload.name,
        clients=CLIENTS,
        ttl_ms=TTL_MS,
        permits=promises.permits,
        model="reentrant" if promises.reentrant else "",
        stores=workload.stores,
    )
    events = list(merge_event_files(paths))
    ledger = [structs.replace(each, time=events[-1].time) for each in ledger_of(events)]
    return History.of([terms_event(terms), *events, *ledger])


@dataclass(frozen=True)
class _Client:
    workload: Workload
    backend: Backend
    memory: Memory
    stopping: threading.Event

    def live(self, path: Path, number: int) -> None:
        aims = path.with_suffix(".aims")
        aims.mkdir()
        recorder = Recorder(
            EventWriter(path), path.stem, number, CLIENTS, origin_ns=0, stall_ms=1e9
        )
        settings = LockSettings(path.stem, TTL_MS, random.Random(number))
        session = Session(
            backend=self.backend,
            lock=self.backend.connect((), settings),
            storage=MemoryStorage(self.memory) if self.workload.stores else None,
            settings=settings,
            recorder=recorder,
            stopping=self.stopping,
            keys=("k1",),
            think_ms=(1, 3),
            check_validity=False,
            aims=aims,
        )
        with closing(session):
            self.workload.run(session)
        recorder.close()


def _answered(paths: list[Path], f: str) -> int:
    texts = (path.read_text() for path in paths if path.exists())
    return sum(text.count(f'"type":"ok","f":"{f}"') for text in texts)
