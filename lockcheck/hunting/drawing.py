"""Plans of runs that are drawn at random: faults alone, at the same time and after each other,
with more and fewer clients, longer and shorter leases and work."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random

from msgspec import structs

from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.nemesis import ALL, FAULTS, NO_FAULT
from lockcheck.nemesis.base import Plan, Step
from lockcheck.nemesis.drawing import applicable, with_a_trigger
from lockcheck.run.resolve import planned, resolve

CLIENTS = (2, 3, 5, 8)
LEASES_MS = (1_000, 2_000, 3_000)
WORK = (0.005, 0.02, 0.1, 0.75)  # of the lease
AT_ONCE = (1, 1, 2, 3)
OFTEN_ALL = 0.25
MOST_REFUSED = 100  # plans in a row that make no sense


@dataclass
class Drawing:
    """`fixed`: names of fields of `base` that are not drawn."""

    base: RunConfig
    fixed: Collection[str]
    _able: dict[int, list[Step]] = field(default_factory=dict)  # faults by the lease

    def plans(self) -> Iterator[RunConfig]:
        """By the seed of `base`; without end."""
        refused = 0
        for number in count():
            try:
                plan = planned(self._drawn(Random(f"{self.base.seed}/{number}")))
            except UserError:
                refused += 1
                if refused > MOST_REFUSED:
                    raise
                continue
            refused = 0
            yield plan.config

    def _drawn(self, choices: Random) -> RunConfig:
        ttl_ms = choices.choice(LEASES_MS)
        drawn = {
            "clients": choices.choice(CLIENTS),
            "ttl_ms": ttl_ms,
            "think_ms": max(1, round(choices.choice(WORK) * ttl_ms)),
            "seed": choices.randrange(1_000_000),
            "nemesis": (NO_FAULT,),
        }
        free = {name: value for name, value in drawn.items() if name not in self.fixed}
        config = structs.replace(self.base, **free)
        if "nemesis" in self.fixed:
            return config
        return structs.replace(config, nemesis=self._faults(resolve(config).faults, choices))

    def _faults(self, plan: Plan, choices: Random) -> tuple[str, ...]:
        if choices.random() < OFTEN_ALL:
            return (ALL,)
        if plan.ttl_ms not in self._able:
            steps = [step for kind in FAULTS.values() for step in applicable(kind, plan)]
            self._able[plan.ttl_ms] = steps
        able = self._able[plan.ttl_ms]
        chosen = choices.sample(able, min(len(able), choices.choice(AT_ONCE)))
        return tuple(str(with_a_trigger(step, plan, choices)) for step in chosen) or (NO_FAULT,)
