"""A client's claims to locks: what keepers and listeners report, and which thread records it.

A keeper records its renewals under a process of its own. A loss is left here for the working thread
to record: its process may be retired meanwhile, and what it sends before it learns of the loss is
sent in good faith.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lockcheck.backends.base import Grant, Lock, LockSettings, Mode, Renewal
from lockcheck.client.aims import LATEST_AT_WORK
from lockcheck.client.recorder import Recorder
from lockcheck.errors import InternalError
from lockcheck.history import Event, EventType, F, Refusal
from lockcheck.servers.wire import ErrorRow, Refused, WireFailure, classify
from lockcheck.storage.base import Served

# A client in a queue gives up after this many leases, and asks again, so that the history shows a
# lock that is never granted any more.
PATIENCE_TTLS = 4
RENEWALS = 3  # within a lease, by a client that renews it itself


class SectionOver(Exception):
    """The critical section cannot go on: its lock is lost, or its process is retired."""


@dataclass(slots=True)
class RecordedClaim:
    """A claim whose notices and renewals go into the history."""

    key: str
    mode: Mode
    settings: LockSettings
    recorder: Recorder
    errors: tuple[ErrorRow, ...]
    stopping: threading.Event
    wake: Callable[[], None]  # wakes the client from its work, on a loss
    process: int = field(init=False)
    gives_up_at: float = field(init=False)
    since: float = field(init=False)
    valid_until: float | None = None
    renewed: float = field(init=False)
    waited: bool = False
    held: bool = False
    over: bool = False
    why_lost: str = ""
    _guard: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.process = self.recorder.process
        self.gives_up_at = time.monotonic() + PATIENCE_TTLS * self.settings.ttl_ms / 1000
        self.since = self.renewed = self.settings.now_s()

    # --- for the backend ---------------------------------------------------------------------

    def left_s(self) -> float:
        if self.stopping.is_set():
            return 0.0
        return max(0.0, self.gives_up_at - time.monotonic())

    def queued(self) -> None:
        if self.held or self.over or self.process != self.recorder.process:
            raise InternalError(f"the claim to {self.key} is no longer under way: it has no place")
        self.waited = True
        self.recorder.queued(self.key)

    def lost(self, why: str) -> None:
        with self._guard:
            if self.over or self.why_lost:
                return
            self.why_lost = why
        self.wake()

    def renewing(self) -> Renewal:
        since = self.settings.now_s()  # before it is sent, so that a delay shortens the validity
        invoke = self.recorder.keeper_renews(self.key, self.settings.ttl_ms, of=self.process)
        return RecordedRenewal(self, invoke, since)

    def extending(self) -> RecordedRenewal:
        """As `renewing`, by the client itself."""
        self.renewed = self.settings.now_s()
        invoke = self.recorder.invoke(F.RENEW, self.key, ttl_ms=self.settings.ttl_ms)
        return RecordedRenewal(self, invoke, self.renewed)

    def renewal_in_s(self) -> float:
        """When a client that renews the lease itself is to do that, however long it has waited."""
        return self.renewed + self.settings.ttl_ms / 1000 / RENEWALS - self.settings.now_s()

    # --- for the client ----------------------------------------------------------------------

    def granted(self, valid_ms: float | None) -> None:
        """Its validity runs from before the request, or from now if it waited in a queue."""
        with self._guard:
            if valid_ms is not None:
                since = self.settings.now_s() if self.waited else self.since
                self.valid_until = since + valid_ms / 1000
            self.held = True

    def extended(self, since: float, valid_ms: float | None) -> None:
        """Extends the validity, unless it is over: a client that checks it has stopped then."""
        with self._guard:
            if valid_ms is None or not self.still_valid():
                return
            self.valid_until = since + valid_ms / 1000

    def still_valid(self) -> bool:
        return self.valid_until is None or self.settings.now_s() < self.valid_until

    def is_early(self) -> bool:
        """Whether a tenth of the lease is left, or the lock reports no validity."""
        rest_s = (1 - LATEST_AT_WORK) * self.settings.ttl_ms / 1000
        return self.valid_until is None or time.monotonic() < self.valid_until - rest_s

    def end(self) -> None:
        """Ends the claim: later notices are ignored."""
        with self._guard:
            self.over = True


@dataclass(slots=True, eq=False)
class Held:
    """One grant. Of a reentrant lock a client can have several, each with its own release."""

    claim: RecordedClaim
    grant: Grant
    lost: bool = False
    # Writes that count only once the release is confirmed, with the storage's answers.
    writes: list[tuple[Event, Served]] = field(default_factory=list)

    @property
    def key(self) -> str:
        return self.claim.key

    def renew(self, lock: Lock) -> bool:
        """Whether its client, which renews it itself, may go on."""
        renewal = self.claim.extending()
        try:
            renewal.granted(lock.renew(self.grant))
        except (Refused, WireFailure) as failure:
            renewal.failed(failure)
            return False
        return True

    def settle(
        self, outcome: EventType, why: str | None = None, refused: Refusal | None = None
    ) -> None:
        """Answers the writes that count with the release: their outcome is its own."""
        for pending, served in self.writes:
            self.claim.recorder.answer(
                pending, outcome, why, refused, value=served.value, seq=served.seq
            )
        self.writes.clear()


@dataclass(frozen=True, slots=True)
class RecordedRenewal:
    """A keeper's renewal whose answer goes into the history."""

    claim: RecordedClaim
    invoke: Event
    since: float

    def granted(self, valid_ms: float | None) -> None:
        self.claim.recorder.answer(self.invoke, EventType.OK, valid_ms=valid_ms)
        self.claim.extended(self.since, valid_ms)

    def failed(self, failure: Refused | WireFailure) -> None:
        self.claim.recorder.answer(self.invoke, *classify(self.claim.errors, failure))
