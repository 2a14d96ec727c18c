"""How a wrong clock runs: lines through the readings of the true one."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from lockcheck.servers.base import Clock

RATE_ONE = 1 << 32  # rates are in parts of this
NS_PER_S = 1_000_000_000
CLOCKS = (Clock.WALL, Clock.MONOTONIC)
_IDS = {Clock.WALL: time.CLOCK_REALTIME, Clock.MONOTONIC: time.CLOCK_MONOTONIC}


def clock_id(clock: Clock) -> int:
    """As the system numbers it."""
    return _IDS[clock]


def true_ns(clock: Clock) -> int:
    return time.clock_gettime_ns(_IDS[clock])


@dataclass(frozen=True, slots=True)
class ClockLine:
    """It shows `told_from` at `real_from`, and runs at its rate from there on."""

    real_from: int = 0
    told_from: int = 0
    rate: int = RATE_ONE

    def at(self, real_ns: int) -> int:
        return ((real_ns - self.real_from) * self.rate >> 32) + self.told_from

    def jumped(self, by_ns: int) -> ClockLine:
        return replace(self, told_from=self.told_from + by_ns)

    def going_at(self, rate: float, real_ns: int) -> ClockLine:
        """From that moment on."""
        return ClockLine(real_ns, self.at(real_ns), round(rate * RATE_ONE))


TRUE = ClockLine()


@dataclass(frozen=True, slots=True)
class Skew:
    wall: ClockLine = TRUE
    monotonic: ClockLine = TRUE

    def line(self, clock: Clock) -> ClockLine:
        return self.wall if clock is Clock.WALL else self.monotonic

    def with_line(self, clock: Clock, line: ClockLine) -> Skew:
        return replace(self, **{clock.value: line})
