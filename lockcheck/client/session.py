"""What workloads are written with: a client's lock and storage, with every operation recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from lockcheck.backends.base import Backend, Lock, LockSettings, Mode
from lockcheck.client.aims import POLL_S, Aims, Point
from lockcheck.client.claims import Held, RecordedClaim, SectionOver
from lockcheck.client.recorder import Recorder
from lockcheck.history import EventType, F
from lockcheck.history.event import WAITED
from lockcheck.servers.wire import Refused, WireFailure, classify
from lockcheck.storage.base import Ask, Storage

CHANGING = frozenset({F.WRITE, F.RUN})
LONGEST_AIM_S = 60.0  # a nemesis that aims and never strikes must not stop a client for ever
CLOSING_S = 5.0


Section = Callable[["Session", Held], object]


@dataclass(slots=True)
class Session:
    backend: Backend
    lock: Lock  # this client's end of it
    storage: Storage | None  # None: there is none, or the lock's own server holds the data
    settings: LockSettings
    recorder: Recorder
    stopping: threading.Event
    keys: tuple[str, ...]
    think_ms: tuple[float, float]  # the shortest and the longest
    check_validity: bool
    aims: Path  # the folder of the nemesis's marks for this client
    marks: int = 0
    _held: list[Held] = field(init=False, default_factory=list)
    _notified: threading.Event = field(init=False, default_factory=threading.Event)
    _aims: Aims = field(init=False)

    def __post_init__(self) -> None:
        self.lock.mishap = self.recorder.mishap
        self._aims = Aims(self.aims, self.settings.ttl_ms)

    # --- a workload's loop -------------------------------------------------------------------

    def take_turns(
        self, section: Section, mode: Callable[[Session], Mode] = lambda _: Mode.EXCLUSIVE
    ) -> None:
        """The usual loop: a lock, the section under it, a rest; until the client has to leave. The
        mode is chosen once per turn, or the one that is refused more often would become rare."""
        wanted = mode(self)
        while not self.stopping.is_set():
            if self.locked(self.any_key(), section, wanted):
                wanted = mode(self)
            self.rest()

    def any_key(self) -> str:
        return self.settings.choices.choice(self.keys)

    def locked(self, key: str, section: Section, mode: Mode = Mode.EXCLUSIVE) -> bool:
        """Acquire, section, release; returns whether the lock was granted. Within a section it
        raises SectionOver if its process was retired, which then holds nothing any more."""
        held = self.try_acquire(key, mode)
        if held is None:
            return False
        with suppress(SectionOver):  # the history has the reason
            section(self, held)
        self.release(held)
        self._stop_if_retired()
        return True

    @contextmanager
    def entered_again(self, held: Held) -> Iterator[Held]:
        """Acquires a held lock once more. If that fails, or the inner release is not confirmed, the
        lock is lost, and the outer section ends, too."""
        again = self.try_acquire(held.key, held.claim.mode)
        if again is None:
            self._lose(held, "it was not let in again")
            raise SectionOver
        try:
            yield again
        finally:
            left = self.release(again)
        self._stop_if_retired()
        if not left:
            self._lose(held, "its release of the inner level was not confirmed")
            raise SectionOver

    # --- the lock ----------------------------------------------------------------------------

    def try_acquire(self, key: str, mode: Mode = Mode.EXCLUSIVE) -> Held | None:
        """None if it was refused, or not answered. In the latter case its process is retired, so
        within a section it raises SectionOver."""
        shared = mode is Mode.SHARED
        pending = self.recorder.invoke(F.ACQUIRE, key, ttl_ms=self.settings.ttl_ms, shared=shared)
        claim = RecordedClaim(  # before it is sent, so that a delay shortens the validity
            key,
            mode,
            settings=self.settings,
            recorder=self.recorder,
            errors=self.backend.errors,
            stopping=self.stopping,
            wake=self._notified.set,
        )
        try:
            grant = self.lock.acquire(claim)
        except (Refused, WireFailure) as failure:
            claim.end()
            self.recorder.answer(pending, *classify(self.backend.errors, failure))
            self._stop_if_retired()
            return None
        claim.granted(grant.valid_ms)
        self.recorder.answer(pending, EventType.OK, token=grant.token, valid_ms=grant.valid_ms)
        held = Held(claim, grant)
        self._held.append(held)
        return held

    def release(self, held: Held) -> bool:
        """Releases; whether it was confirmed. The lock of a retired process expires instead."""
        if self._is_retired(held):
            self._forget(held)
            self.lock.leave(held.grant)
            held.settle(EventType.FAIL, "never committed")
            return False
        if len(self._held) == 1 and not held.lost:  # else it still holds a lock, or holds none
            self._aims.wait_at(Point.RELEASE)
        self._forget(held)
        pending = self.recorder.invoke(F.RELEASE, held.key)
        try:
            answer = self.lock.release(held.grant)
        except (Refused, WireFailure) as failure:
            failed = classify(self.backend.errors, failure)
            held.settle(*failed)
            self.recorder.answer(pending, *failed)
            return False
        held.settle(EventType.OK)
        blind = not self.backend.promises.checks_owner
        self.recorder.answer(pending, EventType.OK, value=answer, blind=blind)
        return True

    def still_valid(self, held: Held) -> bool:
        """Whether the client may go on; always true unless it checks its validity."""
        return not self.check_validity or held.claim.still_valid()

    def close(self) -> None:
        """Closes lock and storage within a few seconds, even if a driver hangs."""
        closing = threading.Thread(target=self.lock.close, daemon=True)
        closing.start()
        closing.join(CLOSING_S)
        if self.storage is not None:
            self.storage.close()

    # --- losses -------------------------------------------------------------------------------

    def _heed(self) -> None:
        """Records holds that were lost, and raises SectionOver if there are any."""
        self._notified.clear()  # first, so that a later loss wakes the client again
        lost = [held for held in self._held if held.claim.why_lost and not held.lost]
        for held in lost:
            self._lose(held, held.claim.why_lost)
        if lost:
            raise SectionOver

    def _is_retired(self, held: Held) -> bool:
        """Whether the process that was granted it was retired since, by an unanswered operation."""
        return held.claim.process != self.recorder.process

    def _stop_if_retired(self) -> None:
        """Raises SectionOver in the sections around the one in which the process was retired."""
        if any(map(self._is_retired, self._held)):
            raise SectionOver

    def _lose(self, held: Held, why: str) -> None:
        """Marks the lock as lost on all levels; records it once."""
        if not held.lost:
            self.recorder.lost(held.key, why)
        for each in self._held:
            each.lost |= each.key == held.key

    def _forget(self, held: Held) -> None:
        held.claim.end()
        self._held.remove(held)

    def _stop_unless_valid(self, held: Held) -> None:
        if held.lost or self._is_retired(held):
            raise SectionOver
        if not self.still_valid(held):
            self._lose(held, "its own clock says that the lease has run out")
            raise SectionOver

    def _keep(self) -> float:
        """Renews what the client has to renew itself; how long until the next one is due."""
        if not self.backend.promises.extends:
            return inf
        for held in self._held:
            if held.claim.renewal_in_s() <= 0 and not held.renew(self.lock):
                self._stop_if_retired()
                self._lose(held, "it was not renewed")
                raise SectionOver
        return min(held.claim.renewal_in_s() for held in self._held)

    # --- what it protects --------------------------------------------------------------------

    def read(self, held: Held) -> str | None:
        return self._serve(held, F.READ)

    def update(self, held: Held) -> None:
        """Read, think for a while, write back what was read with one's own mark."""
        base = self.read(held)
        self.think()
        self.write_mark(held, base)

    def write_mark(self, held: Held, base: str | None, text: str = "") -> None:
        """Writes one's own mark, behind the workload's own text: the mark is unique, so that judges
        tell writes apart, and names its base."""
        self.marks += 1
        mark = f"{text}v{self.marks}-{self.settings.owner}"
        self._serve(held, F.WRITE, value=mark, base=base)

    def look(self, held: Held) -> str | None:
        """The last job that was done."""
        return self._serve(held, F.LOOK)

    def run_job(self, held: Held, job: str, last: str | None) -> None:
        self._serve(held, F.RUN, value=job, base=last)

    def _serve(
        self, held: Held, f: str, value: str | None = None, base: str | None = None
    ) -> str | None:
        recorder, token = self.recorder, held.grant.token
        if self.check_validity:  # right before the request, or it may come too late
            self._heed()
        self._stop_unless_valid(held)
        later = self.backend.promises.commits and self.storage is None and f in CHANGING
        invoke = recorder.begins_to_write if later else recorder.invoke
        pending = invoke(f, held.key, value=value, base=base, token=token)
        shared = held.claim.mode is Mode.SHARED
        ask = Ask(f, held.key, recorder.process, value, base, token, shared)
        if f in CHANGING:
            self._aims.wait_at(Point.WRITE)
        asked = time.monotonic()
        try:
            served = self.storage.serve(ask) if self.storage else self.lock.serve(held.grant, ask)
        except (Refused, WireFailure) as failure:
            errors = self.storage.errors if self.storage else self.backend.errors
            recorder.answer(pending, *classify(errors, failure))
            raise SectionOver from failure
        if self.storage:
            # A slow storage means a slow machine, unless a fault cut this client off from it.
            recorder.stalled_if_long((time.monotonic() - asked) * 1000, WAITED)
        if later and not served.refusal:
            held.writes.append((pending, served))
        else:
            outcome = EventType.FAIL if served.refusal else EventType.OK
            why = served.refusal or None
            recorder.answer(pending, outcome, why, value=served.value, seq=served.seq)
        if served.refusal:
            self._lose(held, "the storage refused it")
            raise SectionOver
        self._heed()
        return served.value

    # --- time --------------------------------------------------------------------------------

    def think(self) -> None:
        """Work under the lock: the loss of a lock ends it early, SIGTERM does not.

        It lasts while the nemesis aims at this client, unless the client notices that its lease has
        run out.
        """
        until = time.monotonic() + self.settings.choices.uniform(*self.think_ms) / 1000
        while (left_s := until - time.monotonic()) > 0:
            self._notified.wait(min(left_s, self._keep()))
            self._heed()
        until = time.monotonic() + LONGEST_AIM_S
        while self._aimed_at() and time.monotonic() < until:
            self._keep()
            # A client that was stopped meanwhile goes on with its next step.
            if self._notified.wait(POLL_S) and self._aimed_at():
                self._heed()

    def _aimed_at(self) -> bool:
        if not all(self.still_valid(held) for held in self._held):
            return False
        if self._aims.at(Point.WORK):
            return True
        asked = bool(self._aims.at(Point.LEASE))
        return asked and all(held.claim.is_early() for held in self._held)

    def rest(self) -> None:
        """Waits between two attempts, as long as the lock's `retry_ms` says."""
        self.stopping.wait(self.settings.choices.uniform(*self.backend.retry_ms) / 1000)
