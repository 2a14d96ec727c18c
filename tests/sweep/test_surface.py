"""The sentence of a sweep, its table and its data."""

from __future__ import annotations

import json

import pytest

from lockcheck.config import RunConfig
from lockcheck.matrix.model import CellOutcome
from lockcheck.sweep.grid import Grid
from lockcheck.sweep.surface import Surface
from lockcheck.sweep.table import table
from tests.sweep.made_up import outcomes, plan, surface

PAUSES = (100, 1000, 3000)
UP_TO_3_S = "With pauses of up to 3 s and work of 50 to 300 ms"
ROWS = {
    1000: "oooooooooo xxoooooooo xxxxxxxxxx",
    2000: "oooooooooo oooooooooo xxxxxxxxxx",
    4000: "oooooooooo oooooooooo oooooooooo",
    8000: "oooooooooo oooooooooo ooooo?ooo!",
}
FREED = {1000: (900.0, 990.0), 4000: (3900.0, 4100.0, 3950.0)}


def test_from_which_lease_on_none_broke_how_sure_that_is_and_what_it_costs() -> None:
    assert surface(PAUSES, ROWS, FREED).answer == (
        f"{UP_TO_3_S}, no run broke from a TTL of 4 s on "
        "(none of 10 with that TTL and pause: the true rate may be up to 30 %); the lock is then "
        "gone for up to 4.1 s after a crash."
    )


def test_without_crashes_nothing_is_known_of_them() -> None:
    assert surface(PAUSES, ROWS).answer.endswith("may be up to 30 %).")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (  # nothing is enough for the longest pause, but for a shorter one
            {1000: "oooo xooo xxxx", 8000: "oooo oooo ooox"},
            (
                f"{UP_TO_3_S}, runs broke even with a TTL of 8 s. "
                "With pauses of up to 1 s and work of 50 to 300 ms, no run broke from a TTL of 8 s "
                "on (none of 4 with that TTL and pause: the true rate may be up to 75 %)."
            ),
        ),
        (  # a longer lease that broke makes a shorter one that did not no answer
            {1000: "oooo oooo oooo", 8000: "ooxo oooo oooo"},
            f"{UP_TO_3_S}, runs broke even with a TTL of 8 s.",
        ),
        (
            {1000: "oooo oooo oooo", 8000: "oooo oooo oooo"},
            (
                f"{UP_TO_3_S}, no run broke from a TTL of 1 s, "
                "the shortest that was tried, on (none of 4 with that TTL and pause: the true rate "
                "may be up to 75 %)."
            ),
        ),
        (  # a TTL in question
            {2000: "oooo oooo oooo"},
            (
                f"{UP_TO_3_S}, no run broke with a TTL of 2 s "
                "(none of 4 with that TTL and pause: the true rate may be up to 75 %)."
            ),
        ),
        (
            {2000: "xxxx xxxx xxxx"},
            f"{UP_TO_3_S}, runs broke with a TTL of 2 s.",
        ),
        (  # unknown is not safe
            {1000: "oooo oooo oooo", 8000: "???? ???? ????"},
            (f"{UP_TO_3_S}, some runs gave no answer even with a TTL of 8 s."),
        ),
        (
            {2000: "ooo ooo ooo"},
            (
                f"{UP_TO_3_S}, no run broke with a TTL of 2 s "
                "(none of 3 with that TTL and pause: too few for a rate)."
            ),
        ),
        ({1000: "? ! ?", 8000: "- - -"}, "No run gave an answer."),
    ],
)
def test_the_answer_is_no_more_than_was_found(rows: dict[int, str], words: str) -> None:
    assert surface(PAUSES, rows).answer == words


def test_one_pause_is_not_up_to_it() -> None:
    assert surface((1000,), {2000: "oo"}).answer.startswith("With pauses of 1 s and work")


def test_work_that_is_not_a_range() -> None:
    config = RunConfig(backend="redis", seed=1, think_ms=20)
    cell = plan(Grid((1000,), (500,)), config).cells[0]
    assert Surface.of([CellOutcome(cell, [])]).work == "work of about 20 ms"


def test_the_table_has_shares_with_intervals_and_the_price() -> None:
    rows = {1000: "oo xo", 4000: "oo oo", 8000: "o? !!"}
    freed = {1000: (900.0, 990.0), 4000: (3990.0, 4010.0)}
    lines = list(table(surface((100, 3000), rows, freed)))
    assert [line.rstrip() for line in lines] == [
        "        a holder stands still for",
        "TTL     100 ms         3 s            gone after a crash",
        "1 s     0/2 0-66 %     1/2 9-91 %     945 ms, at most 990 ms",
        "4 s     0/2 0-66 %     0/2 0-66 %     4 s",
        "8 s     0/1 0-79 %     no answer      not known",
    ]


def test_what_was_left_out_or_did_not_run_is_not_shown_as_safe() -> None:
    whole = outcomes((100, 3000), {1000: "o -", 8000: "o o"})
    rest = [each for each in whole if each.cell.config.ttl_ms == 1000 or each.cell.seeds == (1,)]
    left_out = Surface.of([*rest, whole[3]])
    lines = list(table(left_out))
    assert lines[2].split("%")[1].strip().startswith("-")
    assert "not possible" in lines[3]
    assert "some runs gave no answer" in left_out.answer


def test_the_data_is_that_of_the_table() -> None:
    data = json.loads(json.dumps(surface(PAUSES, ROWS, FREED).as_data()))
    [field] = [f for f in data["fields"] if (f["ttl_ms"], f["pause_ms"]) == (1000, 1000)]
    low, high = field.pop("interval")
    assert field == {
        "ttl_ms": 1000,
        "pause_ms": 1000,
        "broke": 2,
        "answers": 10,
        "unknown": 0,
        "failed": 0,
    }
    assert low < 0.2 < high
    assert [f["unknown"] + f["failed"] for f in data["fields"]][-1] == 2
    [crash] = [c for c in data["after_a_crash"] if c["ttl_ms"] == 4000]
    assert crash == {"ttl_ms": 4000, "crashes": 3, "median_ms": 3950.0, "longest_ms": 4100.0}
