"""Times, values, and what would have had to be different."""

from __future__ import annotations

import pytest

from lockcheck.checker import Case
from lockcheck.checker.words import at, lasting, moment, otherwise_of_two, shown
from tests.checker.dsl import history, ns


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0.0125, "0.0125 ms"), (9.5, "9.5 ms"), (12.345, "12.3 ms"), (1234.5, "1,234 ms")],
)
def test_how_long(ms: float, text: str) -> None:
    assert lasting(ns(ms)) == text


def test_when() -> None:
    assert moment(ns(1234.5)) == "1,234.5 ms"
    assert moment(0) == "0 ms"
    assert at(ns(100)) == "at 100 ms"


def test_values() -> None:
    assert shown({"a": [1]}) == '{"a": [1]}'
    assert shown(object).startswith('"<class')
    assert len(shown("x" * 99)) == 40


CASES = {
    "a blind release": (
        """1 acquire 0-1
        2 acquire 110-111
        1 release 120-121 = {"removed": 1, "blind": true}
        3 acquire 130-131
        2 release 150-151
        3 release 160-161""",
        (1, 2),
        "The release of n1 at 120 ms would have had to look whose lock it removes.",
    ),
    "a client that went on after its hold": (
        "1 acquire 0-1 \n 1 release 50-51 \n 2 acquire 60-61 \n 1 write 70-71 a",
        (0, 1),
        "n1 would have had to stop when its hold was over at 50 ms.",
    ),
    "a write that was begun in time": (
        "1 acquire 0-1 \n 2 acquire 110-111 \n 1 write 90-130 a",
        (0, 1),
        "n1 would have had to be done when its lease ran out at 100 ms.",
    ),
}


@pytest.mark.parametrize(("lines", "pair", "text"), CASES.values(), ids=CASES)
def test_otherwise(lines: str, pair: tuple[int, int], text: str) -> None:
    told = history(lines, ttl_ms=100)
    earlier, later = (told.holds[n] for n in pair)
    write = next((o for o in told.operations if o.f == "write"), None)
    assert (
        otherwise_of_two(earlier, later, Case(told).attribution.blame(earlier, later, write))
        == text
    )


def test_a_session_that_was_lost() -> None:
    told = history("1 acquire 0-1 \n 1 read 5-6 = x \n 2 acquire 9-10")
    earlier, later = told.holds
    said = otherwise_of_two(earlier, later, Case(told).attribution.blame(earlier, later))
    assert said == "n1 would have had to stop before n2 was let in at 10 ms."
