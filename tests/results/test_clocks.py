"""The charts of clocks show what was measured, and nothing where no clock was wrong."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lockcheck.history import Event, EventType, History, Notice
from lockcheck.history.event import NS_PER_MS, RUN
from lockcheck.results.report.clocks import HEIGHT, WIDTH, charts
from tests.checker.dsl import events
from tests.results.test_report import ATTACK, report


def told(*samples: tuple[float, Any]) -> History:
    """By time in ms, what was measured then; the run lasts 10 s."""
    facts = [
        Event(round(ms * NS_PER_MS), RUN, EventType.INFO, Notice.CLOCKS, value=value)
        for ms, value in samples
    ]
    end = Event(10_000 * NS_PER_MS, RUN, EventType.INFO, Notice.CLOCKS, value={})
    return History.of([*events("1 acquire 0-1"), *facts, end])


def test_each_clock_that_was_off_has_a_line() -> None:
    found = charts(
        told(
            (100, {"r1": [0.0, 0.0], "r2": [0.0, 0.0], "c1": [0.1, 0.0]}),
            (200, {"r1": [30_000.0, 0.2]}),
            (300, {"r1": [30_000.0, 0.2]}),
            (400, {"r1": [0.0, 0.0], "r2": [0.0, 0.0], "c1": [0.0, 0.0]}),
        )
    )
    (wall,) = found  # no monotonic clock was off
    assert (wall.clock, wall.right, wall.top, wall.bottom) == ("wall", 2, "+30.000 s", "0")
    (line,) = wall.lines
    assert (line.name, line.furthest) == ("r1", "+30.000 s")
    tenth = WIDTH / 100
    high, low = "0.0", f"{HEIGHT:.1f}"
    assert line.path == (
        f"M{tenth:.1f} {low}L{2 * tenth:.1f} {high}L{3 * tenth:.1f} {high}L{4 * tenth:.1f} {low}"
    )


def test_what_was_not_watched_is_not_drawn() -> None:
    facts = told((2, {"r1": [9.0, None]}), (3, {"r1": [9.0, None]}), (5000, {"r1": [9.0, None]}))
    (wall,) = charts(facts)
    assert re.sub("[^ML]", "", wall.lines[0].path) == "MLM"


@pytest.mark.parametrize(
    "value", [None, 7, "r1", {"r1": 7}, {"r1": [1.0]}, {"r1": ["a", "b"]}, {"r1": [1e300, -1e300]}]
)
def test_what_makes_no_sense_is_left_out(value: object) -> None:
    facts = told((2, value))
    assert charts(facts) == []
    assert 'id="clocks"' not in report(facts)


def test_names_of_nodes_are_text() -> None:
    page = report(told((2, {ATTACK: [5000.0, -5000.0]}), (3, {ATTACK: [5000.0, -5000.0]})))
    assert 'id="clocks"' in page
    assert "<img" not in page
