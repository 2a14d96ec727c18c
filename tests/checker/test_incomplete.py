"""A history that lacks lines, or has one twice, accuses nobody of what those explain."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lockcheck.checker import Verdict, judge
from lockcheck.checker.doubt import DoubtCode
from lockcheck.errors import HistoryError
from lockcheck.history import Event, EventType, History
from lockcheck.history.event import STORAGE
from tests.simulation import Plan, simulated_events


def a_run(seed: int) -> list[Event]:
    return list(simulated_events(Plan(seed=seed)))


@pytest.mark.parametrize("seed", range(5))
def test_without_the_lines_of_a_client_it_cannot_be_told(seed: int) -> None:
    events = a_run(seed)
    assert judge(History.of(events)).verdict is Verdict.OK
    for node in sorted({e.node for e in events if e.node and isinstance(e.process, int)}):
        judgement = judge(History.of([e for e in events if e.node != node]))
        assert judgement.verdict is Verdict.UNKNOWN
        assert DoubtCode.WRITE_NEVER_SENT in {doubt.code for doubt in judgement.doubts}


def test_a_real_overlap_is_one_all_the_same() -> None:
    """Nobody's missing lines explain that two clients say that they hold it."""
    events = a_run(0)
    [first, *_] = [e for e in events if e.f == "acquire" and e.type == "ok"]
    granted = replace(first, process=99, node="c99", token=None)
    left = replace(granted, f="release", time=events[-1].time)
    steps = [(granted, EventType.INVOKE), (granted, EventType.OK), (left, EventType.INVOKE)]
    intruder = [replace(event, type=kind) for event, kind in steps]
    told = [e for e in events if not (e.process == STORAGE and e.of == first.process)]
    history = History.of(sorted([*told, *intruder], key=lambda e: e.time))
    assert judge(history).verdict is Verdict.VIOLATION


def test_a_number_that_is_told_twice_is_damage() -> None:
    events = a_run(1)
    [first, *_] = [e for e in events if e.process == STORAGE]
    with pytest.raises(HistoryError, match="twice"):
        History.of([*events, first])
