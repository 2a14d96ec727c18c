"""The kind of service and its day, chosen by a seed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from random import Random


class Renewing(Enum):
    NEVER = auto()
    CLIENT = auto()
    KEEPER = auto()  # a client of its own, which says whose hold it extends
    UNNAMED = auto()  # a keeper that is logged under its client's name


class AfterTimeout(Enum):
    """What a client does after an unanswered acquire."""

    LEAVE = auto()
    RELEASE = auto()
    AGAIN = auto()  # the same request once more


@dataclass(frozen=True, slots=True)
class Day:
    seed: int
    workers: int
    keys: int
    permits: int
    levels: int  # on which a client enters it, at most
    ttl_ms: int  # 0: locks without a lease; then nothing is lost and no client crashes
    turns: int  # of all workers
    tokens: bool
    data: bool
    cas: bool  # data is replaced by compare-and-set
    seqs: bool  # the storage numbers its writes, and they say what they are based on
    refusals: bool  # are logged
    by_name: bool  # a holder is known by its client's name, and not by a secret of each attempt
    remembers: bool  # a release that was done is confirmed again
    renewing: Renewing
    after_timeout: AfterTimeout
    loss: float  # of messages
    slow_ms: int
    timeout_ms: int
    crashes: float  # how likely a client is gone while it waits for an answer
    notices: bool  # clients log that they lost it
    ended: bool  # what was not answered has an end all the same
    leases_told: bool  # in each row; else the user knows
    resolution_ns: int
    begins: float  # where the log begins and ends, of the whole day
    ends: float
    by_client: bool  # one file each, put one behind the other
    spans: bool  # else rows


def day(seed: int, *, turns: int = 60, permits: int = 1, levels: int = 1) -> Day:
    random = Random(seed)

    def likely(share: float) -> bool:
        return random.random() < share

    ttl_ms = random.choice((0, 300, 1_000, 5_000, 5_000))
    lossy = ttl_ms > 0 and likely(0.8)
    slow_ms = random.choice((0, 5, 40)) if lossy else 0
    by_name = likely(0.3)
    late = not by_name and ttl_ms > 300 and likely(0.3)  # an answer can come after its timeout
    data = likely(0.6) and permits == 1
    return Day(
        seed=seed,
        workers=random.choice((2, 3, 6, 12, 24)),
        keys=random.choice((1, 2, 5, 40)),
        permits=permits,
        levels=levels,
        ttl_ms=ttl_ms,
        turns=turns,
        tokens=likely(0.5) and permits == 1,
        data=data,
        cas=data and likely(0.2),
        seqs=data and likely(0.4),
        refusals=likely(0.7),
        by_name=by_name,
        remembers=likely(0.4),
        renewing=random.choice(list(Renewing)) if ttl_ms else Renewing.NEVER,
        after_timeout=random.choice(list(AfterTimeout)),
        loss=random.choice((0.01, 0.05)) if lossy else 0.0,
        slow_ms=slow_ms,
        timeout_ms=slow_ms if late and slow_ms else 2 * slow_ms + 10,
        crashes=random.choice((0.002, 0.02)) if lossy else 0.0,
        notices=likely(0.5),
        ended=likely(0.5),
        leases_told=likely(0.5),
        resolution_ns=random.choice((1, 1_000, 1_000_000, 1_000_000)),
        begins=random.choice((0.0, 0.1, 0.3)),
        ends=random.choice((1.0, 0.9, 0.7)),
        by_client=likely(0.3),
        spans=likely(0.3),
    )
