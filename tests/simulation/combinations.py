"""Locks that are right, under faults that they must survive: nobody may ever accuse them.

What a combination leaves open (which of its faults, whether clients renew, ...) its seed decides,
so that many seeds try many mixtures, and each of them is small enough to strike often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from tests.simulation import Fault, FaultKind, Nesting, Plan, Target

T = TypeVar("T")
TTL_MS = 100
DRIFT_PPM = 10_000
CALM_MS = 220
LONG_CALM_MS = 1_500  # so long it takes to say that a lock is stuck
SHORT_MS = (3, 25)
LONG_MS = (60, 180)
# A pause of the longest, the steps around it and the way to the storage: all have to fit.
RESERVE_MS = 45

NETWORK = (
    Fault(FaultKind.LOSS, Target.NETWORK, (20, 120)),
    Fault(FaultKind.SLOW, Target.NETWORK, (20, 120)),
    Fault(FaultKind.DUPLICATE, Target.NETWORK, (20, 150)),
    Fault(FaultKind.PARTITION, Target.NETWORK, (20, 150), share=0.4),
    Fault(FaultKind.PARTITION, Target.CLIENT, (20, 150)),
    Fault(FaultKind.PARTITION, Target.SERVER, (20, 150)),
)
SERVERS = (
    Fault(FaultKind.PAUSE, Target.SERVER, (5, 150)),
    Fault(FaultKind.CRASH, Target.SERVER, (5, 100)),
)
# One of these: two that follow each other at once are as bad as one that is too long.
SHORT_PAUSES = (
    Fault(FaultKind.PAUSE, Target.HOLDER, SHORT_MS, gap_ms=(40, 80)),
    Fault(FaultKind.PAUSE, Target.ANY, SHORT_MS, gap_ms=(40, 80)),
    Fault(FaultKind.PAUSE, Target.CLIENT, SHORT_MS, gap_ms=(40, 80)),
)
LONG_PAUSES = (
    Fault(FaultKind.PAUSE, Target.HOLDER, LONG_MS, gap_ms=(5, 50)),
    Fault(FaultKind.PAUSE, Target.HOLDER, LONG_MS, gap_ms=(5, 50)),
    Fault(FaultKind.PAUSE, Target.CLIENT, LONG_MS),
    Fault(FaultKind.PAUSE, Target.ANY, (1, 180)),
)
CLOCK_JUMP = Fault(FaultKind.CLOCK_JUMP, Target.SERVER, (10, 50), jump_ms=80)
AMNESIA = Fault(FaultKind.AMNESIA, Target.SERVER, (5, 80))


def guarded_by_fence(seed: int) -> Plan:
    """Tokens that grow and a storage that looks at them: no pause and no clock can break that."""
    draw = Draw(seed)
    lock = draw.one(("fenced", "queue"))
    pause = draw.one(LONG_PAUSES)
    return draw.plan(lock, "fence", (*NETWORK, *SERVERS, CLOCK_JUMP), always=(pause,))


def guarded_by_cas(seed: int) -> Plan:
    """A storage that compares: the lock may even forget, if it is none that gives out tokens."""
    draw = Draw(seed)
    lock = draw.one(("single", "majority", "fenced", "queue"))
    forgetting = (AMNESIA,) if lock in ("single", "majority") else ()
    faults = (*NETWORK, *SERVERS, CLOCK_JUMP, *forgetting)
    return draw.plan(lock, "cas", faults, always=(draw.one(LONG_PAUSES),))


def unguarded(seed: int) -> Plan:
    """Nothing but the lease, and clients that watch it: what it survives, it survives entirely."""
    draw = Draw(seed)
    lock = draw.one(("single", "fenced", "majority", "queue"))
    pause = draw.one(SHORT_PAUSES)
    return draw.plan(lock, "none", (*NETWORK, *SERVERS), always=(pause,), honours=True)


COMBINATIONS: dict[str, Callable[[int], Plan]] = {
    "fence": guarded_by_fence,
    "cas": guarded_by_cas,
    "none": unguarded,
}


class Draw:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed + 1).random  # another sequence than the world's own

    def one(self, choices: Sequence[T]) -> T:
        return choices[int(self.random() * len(choices))]

    def flip(self) -> bool:
        return self.random() < 0.5

    def plan(
        self,
        lock: str,
        guard: str,
        faults: Sequence[Fault],
        *,
        always: tuple[Fault, ...],
        honours: bool = False,
    ) -> Plan:
        """Of all others each is in every fourth run, so that two or three come together."""
        some = tuple(fault for fault in faults if self.random() < 0.25)
        honours = honours or self.random() < 0.25
        calm_ms = CALM_MS if self.random() < 0.95 else LONG_CALM_MS
        nesting = self.one(list(Nesting)) if self.random() < 0.2 else Nesting.NONE
        return Plan(
            seed=self.seed,
            lock=lock,
            guard=guard,
            faults=(*always, *some),
            clients=2 + int(self.random() * 4),
            ttl_ms=TTL_MS,
            until_ms=420 + calm_ms,
            calm_ms=calm_ms,
            think_ms=self.one(((1, 6), (1, 6), (8, 40))),
            rest_ms=self.one(((3, 15), (8, 30))) if calm_ms == CALM_MS else (20, 90),
            check_validity=honours,
            reserve_ms=RESERVE_MS if honours else 0,
            drift_ppm=DRIFT_PPM if self.flip() else 0,
            renews=self.flip(),
            jobs=self.flip(),
            keys=1 if nesting is Nesting.NONE and self.random() < 0.9 else 2,
            nesting=nesting,
        )
