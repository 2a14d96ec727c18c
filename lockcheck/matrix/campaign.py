"""A campaign that was carried out, as its reports show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from lockcheck.matrix.model import CellOutcome, Result


@dataclass(frozen=True, slots=True)
class Threshold:
    text: str  # as in the file: violations == 0
    held: bool | None  # None: there was nothing to measure
    measured: str  # what it was, in words


@dataclass(frozen=True, slots=True)
class News:
    """Findings against those of an earlier campaign, in words."""

    new: tuple[str, ...]
    ongoing: tuple[str, ...]
    resolved: tuple[str, ...]
    against: str  # the name of the earlier one


@dataclass(frozen=True, slots=True)
class Campaign:
    name: str  # the file that asked for it
    started: datetime
    seconds: float
    cells: tuple[CellOutcome, ...]
    thresholds: tuple[Threshold, ...] = ()
    blind: tuple[str, ...] = ()  # sentences: what never happened in any trial
    news: News | None = None  # None: there was nothing to compare it with
    forgiven: frozenset[str] = frozenset()  # trials: all that was unexpected in them is known

    @property
    def results(self) -> Iterator[Result]:
        return (result for outcome in self.cells for result in outcome.results)
