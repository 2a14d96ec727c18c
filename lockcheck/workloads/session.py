"""A client's lock and storage, with every operation recorded: what a workload is written with."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from lockcheck.backends.base import Backend, Grant, Lock, LockSettings, Refused, classify
from lockcheck.backends.redis_server import REDIS_ERRORS
from lockcheck.errors import InternalError
from lockcheck.history import EventType, F
from lockcheck.storage import Ask, Storage
from lockcheck.wire import Address, WireFailure
from lockcheck.workloads.recorder import Recorder

LONGEST_THINK = 1.5  # the longest work under the lock, against the usual one


class SectionOver(Exception):
    """The critical section cannot go on: the client lost the lock, or lost track of itself."""


@dataclass(frozen=True, slots=True)
class Held:
    key: str
    grant: Grant
    since: float  # by the client's own monotonic clock


@dataclass(slots=True)
class Session:
    backend: Backend
    servers: tuple[Address, ...]
    storage: Storage | None
    settings: LockSettings
    recorder: Recorder
    stopping: threading.Event
    think_ms: float
    check_validity: bool
    marks: int = 0
    lock: Lock = field(init=False)

    def __post_init__(self) -> None:
        self.lock = self.backend.connect(self.servers, self.settings)

    # --- the lock ----------------------------------------------------------------------------

    def try_acquire(self, key: str) -> Held | None:
        """One attempt; None where it was not granted, or nobody knows."""
        pending = self.recorder.invoke(F.ACQUIRE, key, ttl_ms=self.settings.ttl_ms)
        since = time.monotonic()  # before it is sent: whatever comes between makes it careful
        try:
            grant = self.lock.acquire(key)
        except (Refused, WireFailure) as failure:
            self.recorder.answer(pending, *classify(self.backend.errors, failure))
            return None
        self.recorder.answer(pending, EventType.OK, token=grant.token, valid_ms=grant.valid_ms)
        return Held(key, grant, since)

    def release(self, held: Held) -> None:
        pending = self.recorder.invoke(F.RELEASE, held.key)
        try:
            said = self.lock.release(held.key, held.grant)
        except (Refused, WireFailure) as failure:
            self.recorder.answer(pending, *classify(self.backend.errors, failure))
            return
        self.recorder.answer(pending, EventType.OK, value=said)

    def still_valid(self, held: Held) -> bool:
        """Whether a client that checks its lease may go on; one that does not, always does."""
        if not self.check_validity or held.grant.valid_ms is None:
            return True
        return (time.monotonic() - held.since) * 1000 < held.grant.valid_ms

    # --- what it protects --------------------------------------------------------------------

    def read(self, held: Held) -> str | None:
        return self._serve(held, F.READ, value=None, base=None)

    def write_mark(self, held: Held, base: str | None) -> None:
        """Writes what was read plus one's own mark: the mark is unique and names its base."""
        self.marks += 1
        self._serve(held, F.WRITE, value=f"{self.settings.owner}-{self.marks}", base=base)

    def _serve(self, held: Held, f: str, value: str | None, base: str | None) -> str | None:
        if self.storage is None:
            raise InternalError(f"the workload asks for a {f}, but the run has no storage")
        recorder, token = self.recorder, held.grant.token
        if not self.still_valid(held):
            recorder.lost(held.key, "its own clock says that the lease has run out")
            raise SectionOver
        pending = recorder.invoke(f, held.key, value=value, base=base, token=token)
        ask = Ask(f, held.key, recorder.process, value=value, base=base, token=token)
        asked = time.monotonic()
        try:
            served = self.storage.serve(ask)
        except WireFailure as failure:
            recorder.answer(pending, *classify(REDIS_ERRORS, failure))
            raise SectionOver from failure
        # Never faulted, so where it makes us wait it is the machine that does.
        recorder.stalled_if_long((time.monotonic() - asked) * 1000)
        outcome = EventType.FAIL if served.refusal else EventType.OK
        recorder.answer(
            pending, outcome, value=served.value, seq=served.seq, error=served.refusal or None
        )
        if served.refusal:
            recorder.lost(held.key, "the storage refused it")
            raise SectionOver
        return served.value

    # --- time --------------------------------------------------------------------------------

    def think(self) -> None:
        """Work under the lock: it takes its time, and SIGTERM does not cut it short."""
        time.sleep(
            self.think_ms * self.settings.choices.uniform(2 - LONGEST_THINK, LONGEST_THINK) / 1000
        )

    def rest(self) -> None:
        """Between two attempts, as long as the lock's own policy says."""
        self.stopping.wait(self.settings.choices.uniform(*self.backend.retry_ms) / 1000)
