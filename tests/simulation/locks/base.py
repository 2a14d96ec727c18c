"""What a simulated lock is: its servers, its client, and what it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from lockcheck.history.event import NS_PER_MS
from tests.simulation.network import Service
from tests.simulation.world import Node, Steps, World


@dataclass(frozen=True, slots=True)
class Grant:
    key: str
    secret: str
    since_ns: int  # by the client's own clock, before the message was sent that was granted
    token: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The lock said no: it certainly did not happen."""

    why: str


@dataclass(frozen=True, slots=True)
class Unsure:
    """Nobody answered in time."""

    why: str


@dataclass(frozen=True, slots=True)
class Done:
    """What a release said about itself, for the history."""

    removed: int
    blind: bool = False


Acquired: TypeAlias = Grant | Refused | Unsure
Released: TypeAlias = Done | Refused | Unsure


@dataclass(slots=True)
class Caller:
    """What the client side of a lock may use: its node, its clock, and names of its own."""

    world: World
    node: Node
    ttl_ms: int
    servers: tuple[str, ...]
    queued: Callable[[str], None]  # tells the history that an acquire has its place in the queue
    attempts: int = 0

    @property
    def ttl_ns(self) -> int:
        return self.ttl_ms * NS_PER_MS

    def clock_ns(self) -> int:
        return self.node.monotonic_ns(self.world.now_ns)

    def secret(self) -> str:
        """One for each attempt: what an old message does must not touch a newer lock."""
        self.attempts += 1
        return f"{self.node.name}:{self.attempts}"


class Lock(Protocol):
    """The client side. Each call is one attempt."""

    def acquire(self, key: str) -> Steps[Acquired]: ...

    def renew(self, grant: Grant) -> Steps[Acquired]: ...

    def release(self, grant: Grant) -> Steps[Released]: ...


@dataclass(frozen=True, slots=True)
class LockKind:
    name: str
    summary: str
    connect: Callable[[Caller], Lock]
    serve: Callable[[World], Service]
    servers: int = 1
    fencing: bool = False
    fair: bool = False
    shared: bool = False  # some of its users are readers
    levels: int = 1  # on which its users hold it
    permits: int = 1
    goes_on_when_refused: bool = False  # its user does, whatever the lock said
    caught_by: tuple[str, ...] = ()  # the codes of the judges that must notice; none: it is right
