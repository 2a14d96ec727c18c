"""One line of the history, in Jepsen's shape, and the vocabulary of its fields."""

from __future__ import annotations

from enum import StrEnum

import msgspec

NS_PER_MS = 1_000_000

# Processes that are no client. A client's process is a number, as in Jepsen.
NEMESIS = "nemesis"
STORAGE = "storage"
RUN = "run"


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


class Notice:
    """Names of the events that are no operation: `info` without an invocation."""

    TERMS = "terms"  # the first line of a run: what was agreed
    LOST = "lost"  # the client was told that it no longer holds the lock
    STALL = "stall"  # a client's tick came late by `value` ms: it did not run
    CLOCK_STEP = "clock-step"  # the host's wall clock jumped by `value` ms
    HEAL = "heal"  # the end of a fault


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """`time` is in nanoseconds of the host's monotonic clock since the run began."""

    time: int
    process: int | str
    type: EventType
    f: str
    key: str | None = None
    value: object = None
    node: str | None = None
    token: int | None = None
    error: str | None = None
    seq: int | None = None  # the storage's number of the read or write
    base: object = None  # what the written value was computed from
    ttl_ms: int | None = None  # the lease that an acquire or renew asks for
    valid_ms: float | None = None  # the validity that the lock promised when it was granted
    fault: int | None = None  # which fault of the run
    of: int | str | None = None  # in the storage's testimony: the process it served


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="kebab"):
    """What a history is to be judged by; the value of its first line.

    A history without it (somebody else's) is judged by these defaults.
    """

    backend: str = ""
    workload: str = ""
    guard: str = "none"
    ttl_ms: int | None = None
    faults: tuple[str, ...] = ()  # asked for: each must have been proven at least once
    clients: int = 0
    seed: int | None = None
    honours_validity: bool = False  # clients stop believing when their lease has run out


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
