"""What a lock under test is: its promises, the servers it needs, its client, its errors."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from lockcheck.backends.expected import Expected
from lockcheck.errors import InternalError, UserError
from lockcheck.nodes.node import NodeSpec
from lockcheck.servers.base import Clock
from lockcheck.servers.wire import Address, ErrorRow, Refused, WireFailure
from lockcheck.storage.base import Ask, Served


@dataclass(frozen=True, slots=True)
class Promises:
    session: bool  # a hold lasts as long as a session that is kept alive; else a lease runs out
    fencing: bool  # a grant comes with a token that grows
    fair: bool = False  # first come, first served
    reentrant: bool = False
    shared: bool = False  # it can be acquired in the mode `shared`
    permits: int = 1  # how many clients may hold it at once
    renews: bool = False  # its keeper renews a hold until it is released
    extends: bool = False  # its client renews a hold itself, between the steps of its work
    checks_owner: bool = True  # a release removes its own lock only; else whatever lock is there
    tells_release: bool = True  # a release is confirmed only if the lock was still held
    waits: bool = False  # an acquire waits for its turn; else it is one attempt
    # Writes under it count when the release is confirmed: both are one transaction.
    commits: bool = False
    stores: bool = False  # its client serves what it protects: no storage of lockcheck's own
    excludes: bool = True  # else there is no lock: every client is let in
    tells_validity: bool = True  # a client can know how long its hold is valid
    # A session ends at once with its "connection", or with its "server"; empty: it outlives both.
    ends_with: str = ""
    # The servers end a session or lease at most this many TTLs after its last renewal.
    lapses_after: float = 1.0
    ttl_step_ms: int = 1  # the resolution of leases, or of session timeouts, of the server

    def words(self) -> str:
        if not self.excludes:
            return "no mutual exclusion"
        words = ["session" if self.session else "lease"]
        words += ["fencing token"] if self.fencing else ["no token"]
        words += [word for word in ("fair", "reentrant", "shared") if getattr(self, word)]
        words += [f"{self.permits} permits"] if self.permits > 1 else []
        words += ["waits in a queue" if self.fair else "waits"] if self.waits else []
        words += ["release commits"] if self.commits else []
        words += [f"ends with its {self.ends_with}"] if self.ends_with else []
        return ", ".join(words)


class Mode(StrEnum):
    EXCLUSIVE = "exclusive"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Grant:
    """The answer that lets a client in. `handle` is for the backend only."""

    key: str
    handle: object
    token: int | None = None
    valid_ms: float | None = None  # from the moment it is returned
    mode: Mode = Mode.EXCLUSIVE


class Renewal(Protocol):
    """A keeper's renewal while it is under way."""

    def granted(self, valid_ms: float | None) -> None:
        """The hold is valid for `valid_ms` from now; None if the lock reports no validity."""

    def failed(self, failure: Refused | WireFailure) -> None:
        """Refused, or unknown: the table of errors decides which."""


class Claim(Protocol):
    """A client's claim to one lock: from its acquire to the end of its hold.

    Its methods may be called from any thread, such as a keeper's. The client's own thread records a
    loss and ends its work as soon as it learns of it; what it did before, it did in good faith.
    Calls for a claim that is over are ignored, so that a late one never affects the next claim to
    the key.
    """

    @property
    def key(self) -> str: ...

    @property
    def mode(self) -> Mode: ...

    def left_s(self) -> float:
        """How long the client will still wait; 0 once it has to leave."""

    def queued(self) -> None:
        """The claim has its place in the queue. Called by `acquire`, before it waits."""

    def lost(self, why: str) -> None:
        """The hold is over without a release."""

    def renewing(self) -> Renewal:
        """Records the invocation of a renewal; a keeper calls it right before it sends one."""


class Lock(ABC):
    """The client side of a lock.

    Its methods raise Refused, or a WireFailure that the backend's table of errors explains. Every
    wait for a server has a deadline.
    """

    # Called with what befell a program that the client works through, and with the last moment, of
    # the monotonic clock in ns, at which that certainly lived.
    mishap: Callable[[str, int], object] = staticmethod(lambda _what, _lived_ns: None)

    @abstractmethod
    def acquire(self, claim: Claim) -> Grant:
        """One attempt; if the lock `waits`, until its turn has come or `claim.left_s()` is 0."""

    @abstractmethod
    def release(self, grant: Grant) -> object:
        """Returns the value of its answer in the history."""

    def renew(self, grant: Grant) -> float | None:
        """Renews the lease of a lock that `extends`: for how long it is valid from now, if known.
        Refused: it is not the owner's any more."""
        raise InternalError(f"{type(self).__name__} does not renew {grant.key}")

    def serve(self, grant: Grant, ask: Ask) -> Served:
        """Reads or writes the data that the lock's own server holds (see StorageKind). Refused: it
        certainly did not happen, and never will."""
        raise InternalError(f"{type(self).__name__} has no storage for a {ask.f} of {grant.key}")

    def leave(self, grant: Grant) -> None:  # noqa: B027 - a lease needs nothing to run out
        """Stops what keeps the hold alive, so that it expires; it will not be released."""

    @abstractmethod
    def close(self) -> None:
        """Called once, at the end of the client. Quick; leaves no thread behind."""


@dataclass(frozen=True, slots=True)
class LockSettings:
    owner: str  # the client's node
    ttl_ms: int
    choices: random.Random
    lease_clock: Clock = Clock.MONOTONIC  # by which it measures its lease

    def now_s(self) -> float:
        return time.time() if self.lease_clock is Clock.WALL else time.monotonic()


@dataclass(frozen=True, slots=True)
class Backend:
    name: str
    summary: str
    promises: Promises
    servers: tuple[NodeSpec, ...]
    connect: Callable[[tuple[Address, ...], LockSettings], Lock]
    errors: tuple[ErrorRow, ...]
    retry_ms: tuple[float, float] = (5, 25)  # between two attempts: at least, at most
    independent: bool = False  # its servers know nothing of each other
    contact: str = ""  # the kind of server that clients connect to; empty: all of them
    storage: str = "redis"  # the kind of storage that it protects: see lockcheck/storage
    workload: str = "register"  # the usual one
    ended_by: str = ""  # what ends the session of a dead client, in words
    # What is tested, as a finding names it, where that is more than its server: a library on top of
    # it, a pooler before it.
    accused: str = ""
    instead: str = ""  # what to use instead of that, if it breaks
    expected: tuple[Expected, ...] = ()

    def check_ttl(self, ttl_ms: int) -> None:
        step_ms = self.promises.ttl_step_ms
        if ttl_ms % step_ms:
            next_ms = (ttl_ms // step_ms + 1) * step_ms
            raise UserError(
                f"{self.name} needs --ttl in steps of {step_ms} ms (got {ttl_ms} ms)",
                cure=f"--ttl {next_ms}ms" if next_ms % 1000 else f"--ttl {next_ms // 1000}s",
            )
