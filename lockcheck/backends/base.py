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
    permits: int = 1  # how many may hold it at once
    renews: bool = False  # its keeper renews a hold until it is released
    checks_owner: bool = True  # a release removes its own lock only; else whatever lock is there
    waits: bool = False  # an acquire waits for its turn; else it is one attempt
    # Writes under it count when the release is confirmed: both are one transaction.
    commits: bool = False
    excludes: bool = True  # else there is no lock: everybody is let in
    tells_validity: bool = True  # a client can know how long its hold is valid
    # How many TTLs after the last renewal the servers end a session or lease, at the latest.
    lapses_after: float = 1.0
    ttl_step_ms: int = 1  # the resolution of leases, or of session timeouts, of the server

    def words(self) -> str:
        if not self.excludes:
            return "no mutual exclusion"
        said = ["session" if self.session else "lease"]
        said += ["fencing token"] if self.fencing else ["no token"]
        said += [word for word in ("fair", "reentrant", "shared") if getattr(self, word)]
        said += [f"{self.permits} permits"] if self.permits > 1 else []
        said += ["waits in a queue" if self.fair else "waits"] if self.waits else []
        said += ["release commits"] if self.commits else []
        return ", ".join(said)


class Mode(StrEnum):
    EXCLUSIVE = "exclusive"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Grant:
    """What a client gets when it is let in. `handle` is for the backend only."""

    key: str
    handle: object
    token: int | None = None
    valid_ms: float | None = None  # from when it is returned
    mode: Mode = Mode.EXCLUSIVE


class Renewal(Protocol):
    """A keeper's renewal that is under way."""

    def granted(self, valid_ms: float | None) -> None:
        """`valid_ms` from now on; None if the lock tells no validity."""

    def failed(self, failure: Refused | WireFailure) -> None:
        """Refused, or nobody knows: the table of errors says which."""


class Claim(Protocol):
    """A client's claim to one lock: from its acquire to the end of its hold.

    Its methods may be called from any thread, a keeper's or a listener's. When the client itself
    learns that a claim was lost, that goes into the history, and the work under the lock ends: what
    it did before, it did in good faith. Calls for a claim that is over are ignored, so that a late
    one never affects the next claim to the same key.
    """

    @property
    def key(self) -> str: ...

    @property
    def mode(self) -> Mode: ...

    def left_s(self) -> float:
        """How long it will wait; 0 also if the client has to leave."""

    def queued(self) -> None:
        """It has its place in the queue. Called by `acquire` itself, before it waits."""

    def lost(self, why: str) -> None:
        """The hold is over, although nobody released it."""

    def renewing(self) -> Renewal:
        """Called right before a keeper sends a renewal, which goes into the history."""


class Lock(ABC):
    """The client side of a lock.

    Raises Refused, or a WireFailure that the backend's table of errors explains. Whatever waits
    for a server has a deadline.
    """

    @abstractmethod
    def acquire(self, claim: Claim) -> Grant:
        """One attempt; the caller decides on the next. Or, if the promises say that it waits: in
        the queue until its turn has come or `claim.left_s()` is over."""

    @abstractmethod
    def release(self, grant: Grant) -> object:
        """Returns what the history should say about it."""

    def serve(self, grant: Grant, ask: Ask) -> Served:
        """If the data that it protects is in its own server: see StorageKind. A Refused means that
        it certainly did not happen, and never will."""
        raise InternalError(f"{type(self).__name__} has no storage for a {ask.f} of {grant.key}")

    def leave(self, grant: Grant) -> None:  # noqa: B027 - a lease needs nothing to run out
        """Nobody will release it: stops whatever keeps it alive, so that it expires."""

    @abstractmethod
    def close(self) -> None:
        """At the end of the client. Quick, and no thread goes on after it."""


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
    expected: tuple[Expected, ...] = ()

    def check_ttl(self, ttl_ms: int) -> None:
        step_ms = self.promises.ttl_step_ms
        if ttl_ms % step_ms:
            raise UserError(
                f"{self.name} takes leases in steps of {step_ms} ms, and {ttl_ms} ms is none",
                cure=f"--ttl {ttl_ms // step_ms + 1}s",
            )
