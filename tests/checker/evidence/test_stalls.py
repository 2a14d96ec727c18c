"""What the machine did: how long it stalled, and how far its clock jumped."""

from __future__ import annotations

import pytest

from lockcheck.checker.evidence.stalls import clipped, host_stepped_ns, total_ns
from lockcheck.history import Stall
from tests.checker.dsl import history, ns


def stalls(*spans: tuple[int, int]) -> list[Stall]:
    return [Stall("n1", *span) for span in spans]


@pytest.mark.parametrize(
    ("span", "left"),
    [
        ((0, 5), None),
        ((0, 10), None),  # ends as the time begins
        ((0, 11), (10, 11)),
        ((12, 15), (12, 15)),
        ((19, 30), (19, 20)),
        ((20, 30), None),
        ((0, 30), (10, 20)),
    ],
)
def test_what_lies_within(span: tuple[int, int], left: tuple[int, int] | None) -> None:
    parts = clipped(stalls(span), 10, 20)
    assert [(part.start_ns, part.end_ns) for part in parts] == ([left] if left else [])


@pytest.mark.parametrize(
    ("spans", "total"),
    [
        ((), 0),
        (((0, 5),), 5),
        (((3, 5), (7, 8)), 3),
        (((7, 8), (3, 5)), 3),
        (((3, 7), (5, 9)), 6),
        (((3, 9), (4, 5)), 6),
        (((3, 9), (4, 5), (8, 10)), 7),
        (((3, 5), (5, 6)), 3),
    ],
)
def test_what_two_of_them_cover_counts_once(spans: tuple[tuple[int, int], ...], total: int) -> None:
    assert total_ns(stalls(*spans)) == total


@pytest.mark.parametrize(
    ("lines", "ms"),
    [
        ("", 0),
        ("clock-step n1 1500 40", 41),  # one more: that is how precisely it is known
        ("clock-step n1 1500 -40", 0),
        ("clock-step n1 1500 0.5", 1.5),
        ("clock-step n1 1500 40 \n clock-step n1 1600 -40", 41),
        ("clock-step n1 1500 40 \n clock-step n1 1600 2", 43),
        ("clock-step n1 1500 40 \n clock-step n2 1500 45", 46),
        ("clock-step n1 999 40", 0),
        ("clock-step n1 1000 40", 41),
        ("clock-step n1 2200 40", 41),  # noticed 200 ms later
        ("clock-step n1 2201 40", 0),
        ("fault skew n1 100-1299 \n clock-step n1 1500 40", 41),
        ("fault skew n1 100-1300 \n clock-step n1 1500 40", 0),
        ("fault skew n1 1500-1600 \n clock-step n1 1500 40", 0),
        ("fault skew n1 1501-1600 \n clock-step n1 1500 40", 41),
        ("fault skew n2 1400-1600 \n clock-step n1 1500 40", 41),
    ],
)
def test_how_far_the_clock_jumped(lines: str, ms: float) -> None:
    told = history(lines)
    steps = told.clock_steps
    assert host_stepped_ns(steps, told.faults, ns(1000), ns(2000)) == ns(ms)


@pytest.mark.parametrize(
    ("lines", "counted"),
    [
        ("stall n1 20-60 waited", True),
        ("stall n1 20-60 waited\nfault cut n1 30-40 effect=cuts", False),
        ("stall n1 20-60 waited\nfault cut s1 30-40 effect=cuts", False),  # of its other side
        ("stall n1 20-60 waited\nfault loss n1 30-40 effect=slows", False),
        ("stall n1 20-60 waited\nfault cut n1 70-80 effect=cuts", True),  # later
        ("stall n1 20-60 waited\nfault kill r1 30-40 effect=ends", True),
        ("stall n1 20-60\nfault cut n1 30-40 effect=cuts", True),  # it did not run
    ],
)
def test_a_wait_for_the_storage_is_the_machines_unless_a_cut_explains_it(
    lines: str, counted: bool
) -> None:
    assert bool(history(lines, "1 acquire 0-1").stalls) is counted
