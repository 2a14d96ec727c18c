"""A lock that nobody was granted once the faults were healed makes a run unknown, or is stuck."""

from __future__ import annotations

import pytest

from lockcheck.checker import judge
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.history import Event, EventType, History
from tests.checker.dsl import history, ns

ENOUGH = "\n".join(f"{n % 2 + 1} acquire {n * 10}-{n * 10 + 1}" for n in range(20))
HELD = "\n".join(f"3 acquire {n}-{n + 5}! error=held" for n in range(1000, 1400, 50))
NO_ANSWER = HELD.replace("error=held", "error=connect:refused")


def judged(lines: str, quiet_ms: int | None) -> tuple[Doubt, ...]:
    made = history(*lines.splitlines(), ttl_ms=100)
    events = list(made.events)
    if quiet_ms is not None:
        events.append(Event(ns(quiet_ms), "nemesis", EventType.INVOKE, "quiet"))
    events.sort(key=lambda event: event.time)
    return judge(History.of(events, terms=made.terms)).doubts


@pytest.mark.parametrize(
    ("lines", "quiet_ms", "told"),
    [
        (HELD, 900, True),
        (NO_ANSWER, 900, True),
        (HELD, None, False),
        (HELD, 1300, False),  # too few attempts to tell
        (HELD + "\n3 acquire 1390-1500", 900, False),
    ],
)
def test_what_is_told(lines: str, quiet_ms: int | None, told: bool) -> None:
    doubts = judged(lines, quiet_ms)
    assert (DoubtCode.NOT_GRANTED_AFTER_HEALING in {doubt.code for doubt in doubts}) is told
