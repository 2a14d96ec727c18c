"""What the events mean: operations, holds, faults, stalls, and what the storage testifies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lockcheck.history.event import (
    NS_PER_MS,
    Event,
    EventType,
)

LONGEST_MS = 1e12  # thirty years: what claims to last longer is no measurement


@dataclass(frozen=True, slots=True)
class Operation:
    """An invocation and, where there was one, its answer."""

    invoke: Event
    answer: Event | None

    @property
    def process(self) -> int | str:
        return self.invoke.process

    @property
    def f(self) -> str:
        return self.invoke.f

    @property
    def key(self) -> str:
        return self.invoke.key or ""

    @property
    def node(self) -> str:
        return self.invoke.node or f"process {self.invoke.process}"

    @property
    def start_ns(self) -> int:
        return self.invoke.time

    @property
    def end_ns(self) -> int | None:
        """None where nobody knows when, or whether, it took effect."""
        return None if self.answer is None or self.unknown else self.answer.time

    @property
    def ok(self) -> bool:
        return self.answer is not None and self.answer.type is EventType.OK

    @property
    def failed(self) -> bool:
        return self.answer is not None and self.answer.type is EventType.FAIL

    @property
    def unknown(self) -> bool:
        return self.answer is None or self.answer.type is EventType.INFO


class Ending(StrEnum):
    """Why a client stopped holding a lock for certain."""

    RELEASED = "released"
    LOST = "lost"  # it was told so
    EXPIRED = "expired"  # its own clock told it, and it honours that
    LAST_SEEN = "last-seen"  # it never released: certain only up to its last sign of life


@dataclass(frozen=True, slots=True)
class Hold:
    """What a client believes: certain from the grant's answer to the end named by `ending`."""

    key: str
    process: int | str
    node: str
    acquire: Operation
    end_ns: int
    ending: Ending
    release: Operation | None
    renewals: tuple[Operation, ...] = ()

    @property
    def start_ns(self) -> int:
        answer = self.acquire.answer
        assert answer is not None  # noqa: S101 - a hold is made of a granted acquire only
        return answer.time

    @property
    def shared(self) -> bool:
        return self.acquire.invoke.shared

    @property
    def token(self) -> int | None:
        return self.acquire.answer.token if self.acquire.answer else None

    def promised_until_ns(
        self, default_ttl_ms: int | None, *, as_of_ns: int | None = None
    ) -> int | None:
        """Until when the lease was promised; None: a lock without a lease.

        It runs from an invocation, not from its answer: the server may have begun to count then.
        With `as_of_ns` only what the holder had been told by then counts: a renewal that is
        granted after somebody else was let in was no promise at that moment.
        """
        granted = [self.acquire, *(r for r in self.renewals if _granted_by(r, as_of_ns))]
        leases = [(o.start_ns, o.invoke.ttl_ms or default_ttl_ms) for o in granted]
        ends = [start_ns + ttl_ms * NS_PER_MS for start_ns, ttl_ms in leases if ttl_ms]
        return ends[-1] if ends else None


def _granted_by(renewal: Operation, as_of_ns: int | None) -> bool:
    end_ns = renewal.end_ns
    return renewal.ok and end_ns is not None and (as_of_ns is None or end_ns <= as_of_ns)


def validity_end_ns(granted: Operation, default_ttl_ms: int | None) -> int | None:
    """Until when a client that watches its validity believes in this grant; None: it was told none.

    Never longer than the lease: it counts from before the answer was written down, and may have
    stood still in between.
    """
    answer = granted.answer
    if answer is None or answer.valid_ms is None:
        return None
    valid_ms = max(0.0, min(answer.valid_ms, LONGEST_MS))
    until_ns = answer.time + int(valid_ms * NS_PER_MS)
    ttl_ms = granted.invoke.ttl_ms or default_ttl_ms
    return min(until_ns, granted.start_ns + ttl_ms * NS_PER_MS) if ttl_ms else until_ns


def believed_until_ns(hold: Hold, default_ttl_ms: int | None) -> int | None:
    """A renewal extends it only when its answer came in time: once the validity is over, such a
    client has stopped, and the hold that it certainly had is over with it.
    """
    until_ns = validity_end_ns(hold.acquire, default_ttl_ms)
    for renewal in hold.renewals:
        extended_ns = validity_end_ns(renewal, default_ttl_ms) if renewal.ok else None
        in_time = until_ns is not None and renewal.answer and renewal.answer.time <= until_ns
        if extended_ns is not None and in_time:
            until_ns = extended_ns
    return until_ns


@dataclass(frozen=True, slots=True)
class FaultSpan:
    """A fault from the moment it was begun to the moment it was seen to be healed."""

    id: int
    name: str
    node: str
    start_ns: int
    proven_ns: int | None
    healed_ns: int | None
    proof: str
    why_unproven: str = ""

    def touches(self, start_ns: int, end_ns: int) -> bool:
        healed = self.healed_ns
        return self.start_ns <= end_ns and (healed is None or healed >= start_ns)


@dataclass(frozen=True, slots=True)
class Stall:
    """A time in which a client did not run although nobody had stopped it on purpose, or had."""

    node: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Testimony:
    """One read or write as the storage remembers it."""

    seq: int
    f: str
    key: str
    process: int | str
    accepted: bool
    value: object
    base: object
    token: int | None
    reason: str
