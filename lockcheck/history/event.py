"""One line of the history, in Jepsen's shape, and the vocabulary of its fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, TypeAlias

import msgspec
from msgspec.structs import force_setattr as set_in

NS_PER_MS = 1_000_000

# Processes that are not clients. A client's process is a number, as in Jepsen.
NEMESIS = "nemesis"
STORAGE = "storage"
RUN = "run"


# Times, tokens and durations have to fit into columns of 64 and 32 bits.
# Times since 1970 fit, too, and so does any lease that follows them.
LATEST_NS = (1 << 61) - (1 << 53)
# Any later time comes from a wall clock: no monotonic clock has run for so long.
SINCE_1970_NS = 1 << 57
Time: TypeAlias = Annotated[int, msgspec.Meta(ge=-LATEST_NS, le=LATEST_NS)]
Token: TypeAlias = Annotated[int, msgspec.Meta(ge=1 - (1 << 63), le=(1 << 63) - 1)]
Length: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]


class EventType(StrEnum):
    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"  # it certainly did not happen
    INFO = "info"  # it is unknown whether it happened; without an invocation: a notice


class F:
    """Names of the operations that lockcheck records. Other workloads may add their own."""

    ACQUIRE = "acquire"
    RELEASE = "release"
    RENEW = "renew"
    READ = "read"
    WRITE = "write"
    CAS = "cas"  # its value is the pair (expected, new)
    ADD = "add"  # to a set, or to a counter
    RUN = "run"  # a job that must run once; its value names the job
    LOOK = "look"  # reads the last job that was done; judges ignore it


WAITED = "waited for the storage"
# The guard of writes in one transaction with the lock, or conditional on it.
TRANSACTION = "transaction"


class Effect(StrEnum):
    """What a fault does to the nodes that it strikes. Judges go by the effect, not by the name."""

    STOPS = "stops"  # no process of the node runs; later all of them go on where they were
    ENDS = "ends"  # its processes are killed; they may be started again
    CUTS = "cuts"  # it runs, but some of its packets are lost
    SKEWS = "skews"  # it runs, and one of its clocks is wrong
    SLOWS = "slows"  # it runs, and what it sends, or does, takes longer
    STARVES = "starves"  # its disk refuses writes: it may go on, hang, or exit


class Refusal(StrEnum):
    """Why an operation certainly did not happen."""

    HELD = "held"  # by another client, or by as many as it lets in
    GONE = "gone"  # the client's own session, lease or place in the queue had ended
    UNAVAILABLE = "unavailable"  # no server could decide: not reached, not ready, too few, too late
    NOT_OWNER = "not-owner"  # the caller does not hold what it wanted to release


class Notice:
    """Names of events that are not operations: `info` without an invocation."""

    TERMS = "terms"  # the first line of a run: what it is judged by
    LOST = "lost"  # the client was notified that it no longer holds the lock
    QUEUED = "queued"  # the client's acquire has joined the lock's queue
    TURN = "turn"  # its turn came: that acquire was not granted before
    PROGRAM = "program"  # a program that the client works through has ended, alive last at `since`
    # The client did not run for `value` ms: its tick came late. With the error WAITED it waited for
    # the storage instead.
    STALL = "stall"
    CLOCK_STEP = "clock-step"  # the host's wall clock jumped by `value` ms
    CLOCKS = "clocks"  # `value`: by node, the offsets of its wall and monotonic clock in ms
    SEALED = "sealed"  # announces or holds the digest of the history: see `seal.py`
    HEAL = "heal"  # the end of a fault
    QUIET = "quiet"  # all faults are healed: every lock has to be granted again


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One line of the history. `time`: ns of the host's monotonic clock since the run began."""

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
    # In the storage's ledger: the process that it served. Of a keeper's renewal: the process whose
    # hold it extends. Of a write that counts only once the release is confirmed: the process that
    # releases.
    of: int | str | None = None
    shared: bool = False  # an acquire of a shared (read) lock
    nodes: tuple[str, ...] | None = None  # that a fault strikes, if there are several
    effect: Effect | None = None  # of a fault, in its first event
    links: tuple[tuple[str, str], ...] | None = None  # that a fault cuts: (source, target)
    asked: str | None = None  # of a fault: as it was asked for
    since: Time | None = None  # of a fault's proof: when the fault took effect
    refused: Refusal | None = None  # of an answer `fail`; `error` has the details in words
    blind: bool = False  # of a release's answer: it did not check whose lock it removed
    unsaid: bool = False  # of a release's answer: it is `ok` whether or not the lock was still held

    @property
    def struck(self) -> tuple[str, ...]:
        """The nodes that a fault strikes; empty if it strikes no particular node."""
        if self.nodes:
            return tuple(dict.fromkeys(self.nodes))
        return (self.node,) if self.node else ()


def earlier(event: Event, by_ns: int) -> Event:
    """The same event `by_ns` nanoseconds earlier."""
    if not by_ns:
        return event
    since_ns = None if event.since is None else event.since - by_ns
    return msgspec.structs.replace(event, time=event.time - by_ns, since=since_ns)


INTERNED_FIELDS = ("f", "key", "node", "error", "value", "base")


def with_interned_texts(events: Iterable[Event]) -> Iterator[Event]:
    """The events with equal texts as one object: in a long history copies take half the memory."""
    texts: dict[str, str] = {}
    processes: dict[int | str, int | str] = {}
    for event in events:
        set_in(event, "process", processes.setdefault(event.process, event.process))
        for name in INTERNED_FIELDS:
            value = getattr(event, name)
            if type(value) is str:
                set_in(event, name, texts.setdefault(value, value))
        yield event


UNLIMITED_PERMITS = 1_000_000  # admits every client: there are always fewer
Permits: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=UNLIMITED_PERMITS)]


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="kebab"):
    """What a history is judged by, the value of its first line; by the defaults without one."""

    backend: str = ""
    server: str = ""  # the usual name of what grants the lock
    accused: str = ""  # what is tested, where that is more than the server: it is to blame instead
    instead: str = ""  # what to use instead of that, if it breaks
    workload: str = ""
    guard: str = "none"
    ttl_ms: Length | None = None
    faults: tuple[str, ...] = ()  # as asked for: each must have been proven at least once
    at_holders: tuple[str, ...] = ()  # those of them that are aimed at the lock's holder
    clients: int = 0
    seed: int | None = None
    # As --check-validity and --lease-clock; files keep the older names, so stored ones can be read.
    # Clients stop using a lock whose validity has ended,
    check_validity: bool = msgspec.field(default=False, name="honours-validity")
    # and check it by a clock that may differ from the history's.
    own_lease_clock: bool = msgspec.field(default=False, name="own-clocks")
    model: str = ""  # the name of the lock's or object's model; empty: guessed
    permits: Permits = 1  # of a semaphore: how many clients may hold it at once
    tells_release: bool = True  # a release is confirmed only if the lock was still held
    fair: bool = False  # the lock promises first come, first served
    session: bool = False  # a hold lasts as long as its holder's session; `ttl_ms` is its timeout
    renews: bool = False  # its keeper renews a lease until its release
    ends_with: str = ""  # a session ends at once with its "connection", or its "server"
    lock_nodes: tuple[str, ...] = ()  # the servers that grant the lock
    stores: bool = False  # clients write to a storage under the lock; that is judged, too
    keeps_data: bool = False  # the lock's client does, by itself: there is no ledger of it
    fewest: Length = 0  # acquisitions (and accepted writes) that suffice; 0: the default
    partial: bool = False  # a production log: it may begin or end in the middle
    began_ns: Time = 0  # time 0 by the log's own clock; 0: unknown
    # How far apart the clocks of two hosts may be; None: not known of a production log, and 0 of
    # any other. For hosts that differ, by name.
    clock_error_ms: float | None = None
    clock_errors_ms: dict[str, float] = {}

    @property
    def one_clock(self) -> bool:
        """Whether all times are of one clock, as in every run, or of clocks that agree."""
        if self.clock_error_is_given and not self.backend:
            return not (self.clock_error_ms or any(self.clock_errors_ms.values()))
        return not self.partial

    @property
    def clock_error_is_given(self) -> bool:
        return self.clock_error_ms is not None or bool(self.clock_errors_ms)

    @property
    def excludes(self) -> bool:
        """Whether the lock keeps anyone out. If not, only the data is judged."""
        return self.permits < UNLIMITED_PERMITS

    @property
    def released_by_anyone(self) -> bool:
        """Whether any client may release the lock (a mutex or semaphore model)."""
        return self.model in ("mutex", "semaphore")

    @property
    def reentrant(self) -> bool:
        """Whether the holder may be granted the lock again; it then has to release as often."""
        return self.model.startswith("reentrant")


def terms_event(terms: Terms) -> Event:
    """The first line of a run's history."""
    return Event(
        time=0, process=RUN, type=EventType.INFO, f=Notice.TERMS, value=msgspec.to_builtins(terms)
    )


encode_event = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(Event).decode
