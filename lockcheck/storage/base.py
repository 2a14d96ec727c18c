"""What a storage is: the data that a lock protects, its guard, and its ledger."""

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
    NONE = "none"  # accepts every write
    # Refuses a token below the highest seen; reads show theirs, too, and raise it. Holders that
    # share the lock may come in any order: theirs must not be below the highest exclusive one.
    FENCE = "fence"
    CAS = "cas"  # refuses a write whose base is not the current value


class Ask(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request as it is sent, or, with `seq` and `refusal`, as the ledger has it."""

    f: str
    key: str
    of: int
    value: str | None = None
    base: str | None = None
    token: int | None = None
    shared: bool = False  # under a shared lock
    seq: int = 0
    refusal: str | None = None


class Served(msgspec.Struct, frozen=True):
    """The answer to a request."""

    seq: int | None  # None: not numbered, since it changed nothing
    refusal: str  # empty: it was accepted
    value: str | None


class Storage(Protocol):
    """Numbers every read and write that it serves, and keeps a ledger of them.

    The guard's check, the number and the entry in the ledger are one atomic step.
    """

    @property
    def errors(self) -> tuple[ErrorRow, ...]:
        """What failures mean for a read or a write."""

    def serve(self, ask: Ask) -> Served:
        """Serves one request. Raises WireFailure."""

    def ledger(self) -> list[Ask]:
        """All requests that it served, by their numbers. Raises WireFailure."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StorageKind:
    """A storage on a node of its own; or in the lock's own server, where one transaction can do
    both: then the lock's client serves requests, and the storage only reads the ledger."""

    name: str
    server: str  # the kind of server that it is
    open: Callable[[Address, Guard], Storage]
    apart: bool = True  # on a node of its own, which no fault strikes unless asked


def ledger_events(ledger: Iterable[Ask], time_ns: int) -> Iterator[Event]:
    """The ledger as events of the moment `time_ns`."""
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
