"""How many certainly held a lock at once, how deep it was entered, and what was never seen."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.history.event import UNLIMITED_PERMITS
from tests.checker.dsl import judged

READER = "{n}@n{n} acquire {a}-{b} shared=true\n {n}@n{n} release {c}-{d}"


def reader(n: int, start: int, end: int) -> str:
    return READER.format(n=n, a=start, b=start + 1, c=end, d=end + 1)


def holder(n: int, start: int, end: int) -> str:
    return reader(n, start, end).replace(" shared=true", "")


WRITER_BESIDE = (reader(1, 0, 10), reader(2, 2, 12), holder(3, 4, 20))
TURNS = tuple(holder(n % 3 + 1, 10 * n, 10 * n + 5) for n in range(12))


@pytest.mark.parametrize(
    ("lines", "terms", "told"),
    [
        ((holder(1, 0, 5), holder(2, 10, 15)), {}, (1, 0, 1)),
        ((holder(1, 0, 10), holder(2, 5, 15)), {}, (2, 0, 1)),
        ((holder(1, 0, 6), holder(2, 5, 15)), {}, (1, 0, 1)),  # an end and a start at once
        ((reader(1, 0, 10), reader(2, 2, 12), reader(3, 4, 20)), {}, (3, 3, 1)),
        (WRITER_BESIDE, {}, (3, 2, 1)),
        ((reader(1, 0, 10), reader(2, 20, 30), holder(3, 12, 15)), {}, (1, 1, 1)),
        ((holder(1, 0, 10), holder(2, 2, 12), holder(3, 4, 20)), {"permits": 3}, (3, 0, 1)),
        # Two keys are two locks.
        ((holder(1, 0, 10), holder(2, 2, 9).replace("acquire", "acquire:j")), {}, (1, 0, 1)),
    ],
)
def test_who_held_it_together(
    lines: tuple[str, ...], terms: dict[str, Any], told: tuple[int, int, int]
) -> None:
    counts = judged(*lines, **terms).counts
    assert (counts.held_together, counts.shared_together, counts.entered_deepest) == told


def test_how_deep_it_was_entered() -> None:
    nested = """
        1 acquire 0-1
        1 acquire 2-3
        1 release 4-5
        1 acquire 6-7
        1 acquire 8-9
        1 release 10-11
        1 release 12-13
        1 release 14-15
        2 acquire 16-17
        2 acquire 18-19!
        2 release 20-21"""
    assert judged(nested, model="reentrant").counts.entered_deepest == 3
    assert judged(nested, model="reentrant").counts.held_together == 1


@pytest.mark.parametrize(
    ("lines", "terms", "doubt"),
    [
        (TURNS, {}, None),
        ((*TURNS, reader(4, 130, 150), reader(5, 140, 160)), {}, None),
        ((*TURNS, reader(4, 130, 139), reader(5, 140, 160)), {}, Doubt(DoubtCode.NEVER_SHARED)),
        (TURNS, {"permits": 2}, Doubt(DoubtCode.PERMITS_UNUSED, number=1, of=2)),
        ((*TURNS, holder(4, 130, 150), holder(5, 140, 160)), {"permits": 2}, None),
        (
            (*TURNS, holder(4, 130, 150), holder(5, 140, 160)),
            {"permits": 3},
            Doubt(DoubtCode.PERMITS_UNUSED, number=2, of=3),
        ),
        (TURNS, {"permits": UNLIMITED_PERMITS}, None),
        (TURNS, {"model": "reentrant"}, None),
        (
            (*TURNS, "4 acquire 130-131\n4 acquire 132-133!"),
            {"model": "reentrant"},
            Doubt(DoubtCode.NEVER_REENTERED),
        ),
        ((*TURNS, "4 acquire 130-131\n4 acquire 132-133"), {"model": "reentrant"}, None),
    ],
)
def test_what_was_never_seen_is_told_of_a_run_of_ours(
    lines: tuple[str, ...], terms: dict[str, Any], doubt: Doubt | None
) -> None:
    judgement = judged(*lines, backend="redis", clients=3, **terms)
    assert judgement.doubts == (() if doubt is None else (doubt,))
    assert not judged(*lines, **terms).doubts, "of somebody else's nobody knows"
