"""A claim as tests make one: it notes what it is told."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from lockcheck.backends.base import Grant, Lock, Mode, Renewal
from lockcheck.backends.keeper import Keeper, KeptAlive
from lockcheck.servers.wire import Refused, WireFailure


@dataclass
class NotedRenewal:
    told: list[str]

    def granted(self, valid_ms: float | None) -> None:
        self.told.append("renewed")

    def failed(self, failure: Refused | WireFailure) -> None:
        self.told.append(f"not renewed: {failure}")


@dataclass
class NotedClaim:
    """`told` says in order what it was told; `lost_something` is set by a loss."""

    key: str = "k"
    patience_s: float = 30.0
    mode: Mode = Mode.EXCLUSIVE
    told: list[str] = field(default_factory=list)
    has_its_place: threading.Event = field(default_factory=threading.Event)
    lost_something: threading.Event = field(default_factory=threading.Event)
    leaving: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.patience_s

    def left_s(self) -> float:
        return 0.0 if self.leaving.is_set() else max(0.0, self._until - time.monotonic())

    def queued(self) -> None:
        self.told.append("queued")
        self.has_its_place.set()

    def lost(self, why: str) -> None:
        self.told.append(f"lost: {why}")
        self.lost_something.set()

    def renewing(self) -> Renewal:
        self.told.append("renewing")
        return NotedRenewal(self.told)


class Acquiring(threading.Thread):
    def __init__(self, lock: Lock, claim: NotedClaim) -> None:
        super().__init__(daemon=True)
        self.lock, self.claim = lock, claim
        self.grant: Grant | None = None
        self.failure: Refused | WireFailure | None = None
        self.start()

    def run(self) -> None:
        try:
            self.grant = self.lock.acquire(self.claim)
        except (Refused, WireFailure) as failure:
            self.failure = failure


def queued(lock: Lock, claim: NotedClaim) -> Acquiring:
    waiting = Acquiring(lock, claim)
    assert claim.has_its_place.wait(30)
    return waiting


def keeper_of(grant: Grant) -> Keeper:
    assert isinstance(grant.handle, KeptAlive)
    return grant.handle.keeper
