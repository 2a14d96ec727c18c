"""What a lock protects: what may be asked of it, what guards it, and how its ledger is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import msgspec

from lockcheck.history import Event, EventType, F
from lockcheck.history.event import STORAGE
from lockcheck.servers.wire import Address, ErrorRow


class Guard(StrEnum):
    NONE = "none"  # takes every write
    # Refuses a token below the highest seen; reads show theirs too, and raise it. Those who share
    # the lock are refused below the highest of those who had it alone: they may be in any order.
    FENCE = "fence"
    CAS = "cas"  # refuses a write whose base is not the current value


class Ask(msgspec.Struct, frozen=True, omit_defaults=True):
    """A read or write, a look or a job as it is sent; with `seq` and `refusal`, as remembered."""

    f: str
    key: str
    of: int
    value: str | None = None
    base: str | None = None
    token: int | None = None
    shared: bool = False  # by who shares the lock with others
    seq: int = 0
    refusal: str | None = None


class Served(msgspec.Struct, frozen=True):
    seq: int | None  # None: it was not numbered, as it changed nothing
    refusal: str  # empty where it was accepted
    value: str | None


class Storage(Protocol):
    """Gives every read and write that it serves a number, and keeps a ledger of them.

    The guard's check, the number and the entry in the ledger are one step, whatever asks at once.
    """

    @property
    def errors(self) -> tuple[ErrorRow, ...]:
        """Which failure says what about a read or a write."""

    def serve(self, ask: Ask) -> Served:
        """Raises WireFailure."""

    def ledger(self) -> list[Ask]:
        """All that it served, in the order of the numbers. Raises WireFailure."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StorageKind:
    """A storage is a node of its own, or in the server that gives the lock, where one step can do
    both: there the lock's own client serves what is asked, and this only tells its ledger."""

    name: str
    server: str  # the kind of server that it is
    open: Callable[[Address, Guard], Storage]
    apart: bool = True  # a node of its own, which is never faulted unless asked


def ledger_events(ledger: Iterable[Ask], time_ns: int) -> Iterator[Event]:
    """The ledger, as events of the moment at which it was asked."""
    for ask in ledger:
        yield Event(
            time=time_ns,
            process=STORAGE,
            type=EventType.FAIL if ask.refusal else EventType.OK,
            f=ask.f,
            key=ask.key,
            value=ask.value,
            base=ask.base if ask.f == F.WRITE else None,
            token=ask.token,
            seq=ask.seq,
            of=ask.of,
            error=ask.refusal,
        )
