"""What a sweep has found: of each lease and each pause how many runs broke, of each lease how long
the lock was gone after a crash; and the one sentence of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

from lockcheck.checker.finding import Verdict
from lockcheck.durations import DurationRange
from lockcheck.matrix.model import CellOutcome
from lockcheck.matrix.rates import at_most, interval, percent
from lockcheck.sweep.grid import pause_ms


@dataclass(frozen=True)
class Field:
    """One lease and one pause."""

    ttl_ms: int
    pause_ms: int
    outcome: CellOutcome

    @property
    def broke(self) -> int:
        return self.outcome.violations

    @property
    def answers(self) -> int:
        return len(self.outcome.known)

    @property
    def interval(self) -> tuple[float, float]:
        return interval(self.broke, self.answers)

    @property
    def range(self) -> str:
        """As in "6 to 79 %"."""
        low, high = map(percent, self.interval)
        return f"{low.removesuffix(' %')} to {high}"

    @property
    def unknown(self) -> int:
        return sum(result.verdict is Verdict.UNKNOWN for result in self.outcome.results)

    @property
    def failed(self) -> int:
        return sum(result.verdict is None for result in self.outcome.results)


@dataclass(frozen=True)
class Crash:
    """How long the lock was gone after crashes of its holders, with one lease."""

    ttl_ms: int
    freed_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float | None:
        return median(self.freed_ms) if self.freed_ms else None

    @property
    def longest_ms(self) -> float | None:
        return max(self.freed_ms, default=None)


@dataclass(frozen=True)
class Surface:
    fields: tuple[Field, ...]
    crashes: tuple[Crash, ...]

    @staticmethod
    def of(outcomes: Iterable[CellOutcome]) -> Surface:
        fields, crashes = list[Field](), list[Crash]()
        for outcome in outcomes:
            config = outcome.cell.config
            if (ms := pause_ms(config)) is not None:
                fields.append(Field(config.ttl_ms, ms, outcome))
            else:
                freed = (ms for result in outcome.results for ms in result.freed_ms)
                crashes.append(Crash(config.ttl_ms, tuple(freed)))
        return Surface(tuple(fields), tuple(crashes))

    @cached_property
    def ttls(self) -> list[int]:
        return sorted({field.ttl_ms for field in self.fields})

    @cached_property
    def pauses(self) -> list[int]:
        return sorted({field.pause_ms for field in self.fields})

    @cached_property
    def _by_place(self) -> dict[tuple[int, int], Field]:
        return {(field.ttl_ms, field.pause_ms): field for field in self.fields}

    def field(self, ttl_ms: int, pause_ms: int) -> Field | None:
        """None: that cell was left out."""
        return self._by_place.get((ttl_ms, pause_ms))

    def crash(self, ttl_ms: int) -> Crash | None:
        return next((crash for crash in self.crashes if crash.ttl_ms == ttl_ms), None)

    def bears(self, ttl_ms: int, longest_pause_ms: int) -> bool:
        """Whether each of these pauses has answers, and none broke."""
        fields = [self.field(ttl_ms, ms) for ms in self.pauses if ms <= longest_pause_ms]
        return all(field is not None and field.answers and not field.broke for field in fields)

    def enough_from(self, longest_pause_ms: int) -> int | None:
        """The shortest lease from which on none broke with pauses up to this one."""
        found = None
        for ttl_ms in reversed(self.ttls):
            if not self.bears(ttl_ms, longest_pause_ms):
                break
            found = ttl_ms
        return found

    # --- the answer

    @property
    def answer(self) -> str:
        """As in "With pauses of up to 3 s and work of 50 to 300 ms, no run broke from a TTL of 4 s
        on (none of 10 with that TTL and pause: the true rate may be up to 30 %)"."""
        if not any(field.answers for field in self.fields):
            return "No run gave an answer."
        longest = self.pauses[-1]
        if (ttl_ms := self.enough_from(longest)) is not None:
            return self._enough(longest, ttl_ms)
        not_enough = self._not_enough(longest)
        for shorter in reversed(self.pauses[:-1]):
            if (ttl_ms := self.enough_from(shorter)) is not None:
                return f"{not_enough} {self._enough(shorter, ttl_ms)}"
        return not_enough

    def _enough(self, longest_pause_ms: int, ttl_ms: int) -> str:
        field = self.field(ttl_ms, longest_pause_ms)
        assert field is not None  # noqa: S101 - `bears` has asked
        shortest = ", the shortest that was tried," if ttl_ms == self.ttls[0] else ""
        lease = f"from a TTL of {written(ttl_ms)}{shortest} on"
        if len(self.ttls) == 1:
            lease = f"with a TTL of {written(ttl_ms)}"
        most = at_most(field.answers)
        rate = f"the true rate may be up to {percent(most)}" if most < 1 else "too few for a rate"
        rate = f"none of {field.answers} with that TTL and pause: {rate}"
        return (
            f"{self._with(longest_pause_ms)}, no run broke {lease} ({rate}){self._price(ttl_ms)}."
        )

    def _price(self, ttl_ms: int) -> str:
        crash = self.crash(ttl_ms)
        if crash is None or crash.longest_ms is None:
            return ""
        return f"; the lock is then gone for up to {written(crash.longest_ms)} after a crash"

    def _not_enough(self, longest_pause_ms: int) -> str:
        ttl_ms = self.ttls[-1]
        fields = [self.field(ttl_ms, ms) for ms in self.pauses if ms <= longest_pause_ms]
        broke = sum(field.broke for field in fields if field)
        lease = f"with a TTL of {written(ttl_ms)}"
        lease = f"even {lease}" if len(self.ttls) > 1 else lease
        what = "runs broke" if broke else "some runs gave no answer"
        return f"{self._with(longest_pause_ms)}, {what} {lease}."

    def _with(self, longest_pause_ms: int) -> str:
        up_to = "up to " if longest_pause_ms > self.pauses[0] else ""
        return f"With pauses of {up_to}{written(longest_pause_ms)} and {self.work}"

    @property
    def work(self) -> str:
        """As in "work of 50 to 300 ms"."""
        think = self.fields[0].outcome.cell.config.think_ms
        if not isinstance(think, DurationRange):
            return f"work of about {written(think)}"
        low, high = written(think.low_ms), written(think.high_ms)
        unit = high[high.index(" ") :]
        return f"work of {low.removesuffix(unit)} to {high}"

    def as_data(self) -> dict[str, Any]:
        return {
            "answer": self.answer,
            "fields": [
                {
                    "ttl_ms": field.ttl_ms,
                    "pause_ms": field.pause_ms,
                    "broke": field.broke,
                    "answers": field.answers,
                    "unknown": field.unknown,
                    "failed": field.failed,
                    "interval": field.interval,
                }
                for field in self.fields
            ],
            "after_a_crash": [
                {
                    "ttl_ms": crash.ttl_ms,
                    "crashes": len(crash.freed_ms),
                    "median_ms": crash.median_ms,
                    "longest_ms": crash.longest_ms,
                }
                for crash in self.crashes
            ],
        }


def written(ms: float) -> str:
    """500 ms, 1.5 s, 12 s."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    return f"{ms / 1000:.1f}".removesuffix(".0") + " s"
