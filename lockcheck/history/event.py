"""One line of the history, in Jepsen's shape, and the vocabulary of its fields."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

import msgspec

NS_PER_MS = 1_000_000

# Processes that are no client. A client's process is a number, as in Jepsen.
NEMESIS = "nemesis"
STORAGE = "storage"
RUN = "run"


# Times, tokens and lengths have to fit into columns of 64 and 32 bits.
Time: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 60), le=1 << 60)]
Token: TypeAlias = Annotated[int, msgspec.Meta(ge=1 - (1 << 63), le=(1 << 63) - 1)]
Length: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]


class EventType(StrEnum):
    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"  # it certainly did not happen
    INFO = "info"  # nobody knows whether it happened; or, without an invocation, a notice


class F:
    """Names of the operations that lockcheck itself records. Other workloads may add theirs."""

    ACQUIRE = "acquire"
    RELEASE = "release"
    RENEW = "renew"
    READ = "read"
    WRITE = "write"
    CAS = "cas"  # its value is the pair of what it expects and what it would write
    ADD = "add"  # to a set, or to a counter
    RUN = "run"  # a job, named by its value, that must run once


class Notice:
    """Names of the events that are no operation: `info` without an invocation."""

    TERMS = "terms"  # the first line of a run: what was agreed
    LOST = "lost"  # the client was told that it no longer holds the lock
    QUEUED = "queued"  # the client whose acquire is under way was told that it has its place
    STALL = "stall"  # a client's tick came late by `value` ms: it did not run
    CLOCK_STEP = "clock-step"  # the host's wall clock jumped by `value` ms
    HEAL = "heal"  # the end of a fault


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """`time` is in nanoseconds of the host's monotonic clock since the run began."""

    time: Time
    process: int | str
    type: EventType
    f: str
    key: str | None = None
    value: object = None
    node: str | None = None
    token: Token | None = None
    error: str | None = None
    seq: int | None = None  # the storage's number of the read or write
    base: object = None  # what the written value was computed from
    ttl_ms: Length | None = None  # the lease that an acquire or renew asks for
    valid_ms: float | None = None  # the validity that the lock promised when it was granted
    fault: int | None = None  # which fault of the run
    of: int | str | None = None  # in the storage's testimony: the process it served
    shared: bool = False  # an acquire that lets in others who share


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="kebab"):
    """What a history is to be judged by; the value of its first line.

    A history without it (somebody else's) is judged by these defaults.
    """

    backend: str = ""
    workload: str = ""
    guard: str = "none"
    ttl_ms: Length | None = None
    faults: tuple[str, ...] = ()  # asked for: each must have been proven at least once
    clients: int = 0
    seed: int | None = None
    honours_validity: bool = False  # clients stop believing when their lease has run out
    model: str = ""  # of the lock or object, by its name; empty: guessed from the operations
    permits: Length = 1  # how many may hold it at once: a semaphore's
    fair: bool = False  # it promises first come, first served
    partial: bool = False  # a log of somebody's day: it may begin, or end, in the middle

    @property
    def released_by_anyone(self) -> bool:
        """So it is said: who asked for a release is then not who gives it up."""
        return self.model in ("mutex", "semaphore")

    @property
    def reentrant(self) -> bool:
        """Whoever holds it may be granted it again, and holds it until it has left as often."""
        return self.model.startswith("reentrant")


def terms_event(terms: Terms) -> Event:
    """The first line of a run's history."""
    return Event(
        time=0,
        process=RUN,
        type=EventType.INFO,
        f=Notice.TERMS,
        value=msgspec.to_builtins(terms),
    )


encode_event = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(Event).decode
