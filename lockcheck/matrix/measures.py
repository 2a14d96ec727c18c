"""What is measured of the runs of a campaign, and how many measurements become one number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from lockcheck.history.event import NS_PER_MS
from lockcheck.matrix.model import Result
from lockcheck.words import span


@dataclass(frozen=True, slots=True)
class Measure:
    of: Callable[[Result], Iterable[float]]  # durations in ms
    lacking: str  # why there may be none of it
    is_duration: bool = True

    def words(self, value: float) -> str:
        if self.is_duration:
            return span(round(value * NS_PER_MS))
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _ungranted(result: Result) -> Iterable[float]:
    return () if result.ungranted_ms is None else (result.ungranted_ms,)


def _seconds(result: Result) -> Iterable[float]:
    return () if result.verdict is None else (1000 * result.seconds,)


def _grants(result: Result) -> Iterable[float]:
    grants = result.counts.get("acquisitions")
    return (1000 * grants / result.lasted_ms,) if grants is not None and result.lasted_ms else ()


MEASURES = {
    "free_again": Measure(
        lambda result: result.freed_ms, "no lock was granted again whose holder had ended"
    ),
    "ungranted": Measure(_ungranted, "no lock was asked for"),
    "seconds": Measure(_seconds, "no run was carried out"),
    "grants_per_second": Measure(_grants, "no run was carried out", is_duration=False),
}


def percentile(values: Sequence[float], percent: Fraction | int) -> float:
    """By the nearest rank: the smallest of the values that so many percent of them do not exceed.
    `percent` is above 0, and at most 100."""
    return sorted(values)[ceil(percent * len(values) / 100) - 1]
