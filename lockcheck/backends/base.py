"""What a lock under test is: what it promises, the servers it needs, its client, its errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lockcheck.errors import UserError
from lockcheck.history import EventType
from lockcheck.nodes import NodeSpec
from lockcheck.wire import Address, WireFailure


@dataclass(frozen=True, slots=True)
class Promises:
    lease: bool  # a hold ends by itself after its TTL; else it lives as long as a session
    fencing: bool  # a grant comes with a token that grows
    fair: bool = False
    reentrant: bool = False
    shared: bool = False
    ttl_step_ms: int = 1  # the finest lease it can ask its server for

    def words(self) -> str:
        said = ["lease" if self.lease else "session"]
        said += ["fencing token"] if self.fencing else ["no token"]
        said += [word for word in ("fair", "reentrant", "shared") if getattr(self, word)]
        return ", ".join(said)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a client got when it was let in. `secret` is the backend's own business."""

    secret: str
    token: int | None = None
    valid_ms: float | None = None


class Refused(Exception):
    """The lock itself said no, in so many words: the operation certainly did not happen."""


class Lock(Protocol):
    """The client side of a lock. Each call is one attempt; whoever calls decides on the next.

    Raises Refused, or a WireFailure that the backend's table of errors explains.
    """

    def acquire(self, key: str) -> Grant: ...

    def release(self, key: str, grant: Grant) -> object:
        """What there is to say about it, for the history."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LockSettings:
    owner: str  # the client's node
    ttl_ms: int
    choices: random.Random


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """What an error says about the operation; what no row lists is unknown (`info`)."""

    phase: str
    exception: str  # the name of the class, or of one that it inherits from
    outcome: EventType
    meaning: str


@dataclass(frozen=True, slots=True)
class Backend:
    name: str
    summary: str
    promises: Promises
    servers: tuple[NodeSpec, ...]
    connect: Callable[[tuple[Address, ...], LockSettings], Lock]
    errors: tuple[ErrorRow, ...]
    retry_ms: tuple[float, float]  # between two attempts: at least, at most

    def check_ttl(self, ttl_ms: int) -> None:
        step_ms = self.promises.ttl_step_ms
        if ttl_ms % step_ms:
            raise UserError(
                f"{self.name} takes leases in steps of {step_ms} ms, and {ttl_ms} ms is none",
                cure=f"--ttl {ttl_ms // step_ms + 1}s",
            )


def classify(errors: tuple[ErrorRow, ...], failure: Refused | WireFailure) -> tuple[EventType, str]:
    """Whether an operation that failed certainly did not happen, and why, in a few words."""
    if isinstance(failure, Refused):
        return EventType.FAIL, str(failure)
    names = {kind.__name__ for kind in type(failure.cause).__mro__}
    for row in errors:
        if row.phase == failure.phase and row.exception in names:
            return row.outcome, f"{row.meaning}: {failure}"
    return EventType.INFO, f"not in the table of errors: {failure}"
