"""How a wrong clock runs: as a linear function of the true one."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from lockcheck.servers.base import Clock

RATE_ONE = 1 << 32  # the fixed-point rate of a true clock
NS_PER_S = 1_000_000_000
CLOCKS = (Clock.WALL, Clock.MONOTONIC)
# Their numbers for clock_gettime(2).
CLOCK_IDS = {Clock.WALL: time.CLOCK_REALTIME, Clock.MONOTONIC: time.CLOCK_MONOTONIC}


def true_ns(clock: Clock) -> int:
    """What the kernel's clock shows now."""
    return time.clock_gettime_ns(CLOCK_IDS[clock])


@dataclass(frozen=True, slots=True)
class ClockLine:
    """Shows `shown_from` when the true clock shows `real_from`, and runs at `rate` from then on."""

    real_from: int = 0
    shown_from: int = 0
    rate: int = RATE_ONE

    def at(self, real_ns: int) -> int:
        """What it shows when the true clock shows `real_ns`."""
        return ((real_ns - self.real_from) * self.rate >> 32) + self.shown_from

    def jumped(self, by_ns: int) -> ClockLine:
        return replace(self, shown_from=self.shown_from + by_ns)

    def going_at(self, rate: float, real_ns: int) -> ClockLine:
        """The same clock, at another rate from `real_ns` of the true clock on."""
        return ClockLine(real_ns, self.at(real_ns), round(rate * RATE_ONE))


TRUE = ClockLine()


@dataclass(frozen=True, slots=True)
class Skew:
    """How the two clocks of a process run."""

    wall: ClockLine = TRUE
    monotonic: ClockLine = TRUE

    def line(self, clock: Clock) -> ClockLine:
        return self.wall if clock is Clock.WALL else self.monotonic

    def with_line(self, clock: Clock, line: ClockLine) -> Skew:
        return replace(self, **{clock.value: line})
