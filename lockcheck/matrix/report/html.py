"""The page of a campaign: one HTML file without a script that needs nothing but itself.

Its style is that of a run's page and campaign.css; its content security policy lets the browser
apply that, by its hash, and load nothing. What comes from runs is escaped text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path

import jinja2

from lockcheck.checker.finding import Verdict
from lockcheck.matrix.campaign import Campaign
from lockcheck.matrix.model import Standing
from lockcheck.matrix.rates import percent
from lockcheck.matrix.report.lines import (
    LONGEST,
    LONGEST_COMMAND,
    SIGNS,
    CellLine,
    cell_lines,
    held_in_words,
    sentence,
    tick,
    verdict_of,
)
from lockcheck.results import report as of_a_run
from lockcheck.results.pages import environment
from lockcheck.words import plain

HERE = Path(__file__).parent
STYLES = (of_a_run.PAGE / "page.css", HERE / "campaign.css")
PAGES_UNFOLDED = 5
NAMED_AT_THE_TOP = 5
SIGN_OF_ALL = {Verdict.OK: "✓", Verdict.UNKNOWN: "?", Verdict.VIOLATION: "✗"}


@dataclass(frozen=True, slots=True)
class Field:
    """A cell on the heat map, with its number in the list below."""

    line: CellLine
    number: int

    @property
    def hover(self) -> str:
        parts = (self.line.id, self.line.standing, self.line.share, self.line.interval)
        return "; ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class HeatMap:
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Field | None, ...]], ...]


def page(campaign: Campaign) -> str:
    lines = cell_lines(campaign)
    html = (
        _environment()
        .get_template("campaign.html")
        .render(
            campaign=campaign,
            verdict=verdict_of(campaign),
            sentence=sentence(campaign),
            lines=lines,
            heat=heat_map(lines),
            deviating=[each for each in lines if each.standing is not Standing.AS_EXPECTED],
            standings=[each for each in Standing if any(line.standing is each for line in lines)],
            totals=list(_totals(campaign, lines)),
            lasted=_clock(campaign.seconds),
        )
    )
    # Text from elsewhere may hold a lone surrogate, which UTF-8 cannot.
    return html.encode("utf-8", "replace").decode()


def heat_map(lines: Iterable[CellLine]) -> HeatMap:
    """Rows and columns in the order of `lines`: those of the worst cell come first."""
    fields = {(line.row, line.column): Field(line, n) for n, line in enumerate(lines, 1)}
    columns = dict.fromkeys(column for _, column in fields)
    rows = dict.fromkeys(row for row, _ in fields)
    return HeatMap(
        columns=tuple(columns),
        rows=tuple((row, tuple(fields.get((row, column)) for column in columns)) for row in rows),
    )


def _totals(campaign: Campaign, lines: list[CellLine]) -> Iterable[tuple[str, str]]:
    results = list(campaign.results)
    planned = sum(len(line.outcome.cell.seeds) for line in lines)
    unknown = sum(result.verdict is Verdict.UNKNOWN for result in results)
    errors = sum(result.verdict is None for result in results)
    yield "cells", f"{len(lines):,}"
    yield "trials that ran", f"{len(results):,} of {planned:,}"
    yield "unknown", f"{unknown:,} ({percent(unknown / len(results))})" if results else "0"
    yield "errors", f"{errors:,}"
    yield "time of all trials", _clock(sum(result.seconds for result in results))
    yield "time from start to end", _clock(campaign.seconds)


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return f"{timedelta(seconds=round(seconds))} h"


@cache
def _environment() -> jinja2.Environment:
    made = environment(HERE, STYLES)
    made.filters.update(plain=plain, tick=tick, held=held_in_words)
    made.globals.update(
        signs=SIGNS,
        sign_of_all=SIGN_OF_ALL,
        longest=LONGEST,
        longest_command=LONGEST_COMMAND,
        named_at_the_top=NAMED_AT_THE_TOP,
        pages_unfolded=PAGES_UNFOLDED,
    )
    return made
