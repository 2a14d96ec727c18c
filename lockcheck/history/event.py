"""One line of the history, in Jepsen's shape, and the vocabulary of its fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, TypeAlias

import msgspec
from msgspec.structs import force_setattr as set_in

NS_PER_MS = 1_000_000

# Processes that are no client. A client's process is a number, as in Jepsen.
NEMESIS = "nemesis"
STORAGE = "storage"
RUN = "run"


# Times, tokens and lengths have to fit into columns of 64 and 32 bits.
# Wall-clock times, counted from 1970, fit as well, and any lease after them.
LATEST_NS = (1 << 61) - (1 << 53)
# No clock that counts from its own start has run for so long; wall clocks have.
SINCE_1970_NS = 1 << 57
Time: TypeAlias = Annotated[int, msgspec.Meta(ge=-LATEST_NS, le=LATEST_NS)]
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
    LOOK = "look"  # at the last job that was done: judges ignore it


WAITED = "waited for the storage"
# Instead of a guard: writes are in one transaction with the lock, or conditional.
TRANSACTION = "transaction"


class Effect(StrEnum):
    """What a fault does to the nodes that it strikes: judges use this, never its name."""

    STOPS = "stops"  # nothing of the node runs; later it goes on as if nothing had happened
    ENDS = "ends"  # its processes are gone; they may be started again
    CUTS = "cuts"  # it runs, but some of its packets are lost
    SKEWS = "skews"  # it runs, and one of its clocks is wrong
    SLOWS = "slows"  # it runs, and what it sends, or does, takes longer
    STARVES = "starves"  # its disk takes no more writes: it may go on, stop, or exit


class Notice:
    """Names of events that are not operations: `info` without an invocation."""

    TERMS = "terms"  # the first line of a run: what was agreed
    LOST = "lost"  # the client was told that it no longer holds the lock
    QUEUED = "queued"  # the client's acquire is under way, and has its place in the queue
    # A client's tick came late by `value` ms: it did not run. Or, if its `error` says so, it waited
    # for the storage for so long.
    STALL = "stall"
    CLOCK_STEP = "clock-step"  # the host's wall clock jumped by `value` ms
    CLOCKS = "clocks"  # `value`: by node, by how many ms its wall and monotonic clock were off
    SEALED = "sealed"  # the history ends with a digest of itself: see `seal.py`
    HEAL = "heal"  # the end of a fault
    QUIET = "quiet"  # all faults are healed, and every lock has to be granted again


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
    # In the storage's ledger the process that it served; of a renewal the process whose hold it
    # extends, where somebody else renews (a keeper: the thread that keeps a lease alive); of a
    # write that counts only when the release is confirmed, the process that releases.
    of: int | str | None = None
    shared: bool = False  # an acquire that lets in others who share
    nodes: tuple[str, ...] | None = None  # those that a fault strikes, where they are not one
    effect: Effect | None = None  # of a fault, in its first event
    links: tuple[tuple[str, str], ...] | None = None  # that a fault cuts: from whom, to whom
    asked: str | None = None  # of a fault: the words that asked for it
    since: Time | None = None  # of a fault's proof: when it took effect, before it was proven

    @property
    def struck(self) -> tuple[str, ...]:
        """The nodes that a fault strikes; empty: none of them in particular."""
        if self.nodes:
            return tuple(dict.fromkeys(self.nodes))
        return (self.node,) if self.node else ()


def earlier(event: Event, by_ns: int) -> Event:
    if not by_ns:
        return event
    since_ns = None if event.since is None else event.since - by_ns
    return msgspec.structs.replace(event, time=event.time - by_ns, since=since_ns)


OFTEN_THE_SAME = ("f", "key", "node", "error", "value", "base")


def with_texts_once(events: Iterable[Event]) -> Iterator[Event]:
    """Equal texts are one object, as are the names of processes: of a long history the copies would
    take as much memory as all else."""
    texts: dict[str, str] = {}
    processes: dict[int | str, int | str] = {}
    for event in events:
        set_in(event, "process", processes.setdefault(event.process, event.process))
        for name in OFTEN_THE_SAME:
            value = getattr(event, name)
            if type(value) is str:
                set_in(event, name, texts.setdefault(value, value))
        yield event


EVERYBODY = 1_000_000  # permits, if nobody is kept out: more than there can be clients
Permits: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=EVERYBODY)]


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="kebab"):
    """What a history is judged by; the value of its first line.

    A history without it (somebody else's) is judged by these defaults.
    """

    backend: str = ""
    server: str = ""  # what grants the lock, as people call it
    workload: str = ""
    guard: str = "none"
    ttl_ms: Length | None = None
    faults: tuple[str, ...] = ()  # asked for: each must have been proven at least once
    at_holders: tuple[str, ...] = ()  # those of them that are aimed at whoever holds the lock
    clients: int = 0
    seed: int | None = None
    honours_validity: bool = False  # clients stop believing when their lease has run out
    own_clocks: bool = False  # by a clock that may tell another time than the history's
    model: str = ""  # of the lock or object, by its name; empty: guessed from the operations
    permits: Permits = 1  # how many may hold it at once: a semaphore's
    fair: bool = False  # it promises first come, first served
    session: bool = False  # a hold lasts as long as its holder's session; `ttl_ms` is its timeout
    stores: bool = False  # its clients write to a storage under the lock, and that is judged too
    fewest: Length = 0  # acquisitions (and accepted writes) that are enough to tell; 0: the usual
    partial: bool = False  # a log of somebody's day: it may begin, or end, in the middle
    began_ns: Time = 0  # what the log's own clock said at the time 0; 0: nobody knows

    @property
    def excludes(self) -> bool:
        """Else there is no lock: everybody is let in, and the data alone is judged."""
        return self.permits < EVERYBODY

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
        time=0, process=RUN, type=EventType.INFO, f=Notice.TERMS, value=msgspec.to_builtins(terms)
    )


encode_event = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(Event).decode
