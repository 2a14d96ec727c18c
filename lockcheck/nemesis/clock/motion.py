"""How a clock is moved: it jumps, drifts, or strobes."""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.nemesis.base import Step
from lockcheck.nemesis.clock.skew import TRUE, ClockLine
from lockcheck.nemesis.parameters import duration, number, signed_duration

JUMP = signed_duration("jump", "by how much the clock is set forward or back", default=30_000)
DRIFT = number("drift", "how many seconds it counts in one second", low=0.001, high=1000)
STROBE = duration("strobe", "how often it is set back and forth")


@dataclass(frozen=True, slots=True)
class Motion:
    by_ns: int = 0
    rate: float = 1.0
    every_ms: int = 0  # how often it strobes

    def line(self, real_ns: int) -> ClockLine:
        """How the clock runs from that moment of the true clock on."""
        jumped = TRUE.jumped(self.by_ns)
        return jumped.going_at(self.rate, real_ns) if self.drifts else jumped

    @property
    def drifts(self) -> bool:
        return self.rate != 1.0


def motion_of(step: Step) -> Motion:
    if isinstance(rate := step.setting(DRIFT.name), int | float):
        return Motion(rate=float(rate))
    by_ms = step.duration_ms(JUMP.name) or 0
    return Motion(by_ns=by_ms * 1_000_000, every_ms=step.duration_ms(STROBE.name) or 0)
