"""Thresholds: as they are written, and what is measured for them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.errors import UserError
from lockcheck.matrix.measures import percentile
from lockcheck.matrix.model import CellOutcome
from lockcheck.matrix.thresholds import NAMES, measured, parse
from tests.matrix.cells import broken, cell, error, fine, outcome, unknown

CAMPAIGN = (
    outcome(cell("redis"), [*broken(2), *fine(6), *unknown(), *error()]),
    outcome(cell("etcd"), fine(10, freed_ms=(900.0, 2100.0), ungranted_ms=4000.0)),
    outcome(cell("redis-naive", "none", "violation"), [*broken(9), *fine()]),
)


def held(text: str, outcomes: tuple[CellOutcome, ...] = CAMPAIGN) -> tuple[bool | None, str]:
    threshold = measured(parse(text), outcomes)
    assert threshold.text == text.strip()
    return threshold.held, threshold.measured


@pytest.mark.parametrize(
    ("text", "kept", "words"),
    [
        ("violations == 0", False, "11 of 28 runs"),
        ("violations(etcd*) == 0", True, "0 of 10 runs"),
        ("violations <= 11", True, "11 of 28 runs"),
        ("violations < 11", False, "11 of 28 runs"),
        ("unexpected == 0", False, "3 of 28 runs"),  # two that came, and one that did not
        ("unexpected( etcd::* ) == 0", True, "0 of 10 runs"),
        ("unknown == 1", True, "1 of 29 runs"),
        ("unknown_rate < 5%", True, "1 of 29, 3 %, 95 % interval 1 to 17 %"),
        ("unknown_rate(redis::*) < 5 %", False, "1 of 9, 11 %, 95 % interval 2 to 43 %"),
        ("errors == 0", False, "1 of 30 runs"),
        ("error_rate(redis::*) == 10%", True, "1 of 10, 10 %, 95 % interval 2 to 40 %"),
        ("errors(etcd*)==0", True, "0 of 10 runs"),
        ("violation_rate(redis-naive*) >= 90%", True, "9 of 10, 90 %, 95 % interval 60 to 98 %"),
        ("violation_rate(redis-naive*) > 90%", False, "9 of 10, 90 %, 95 % interval 60 to 98 %"),
        ("violation_rate(etcd*) <= 1.5%", True, "none of 10: the true rate may be up to 30 %"),
    ],
)
def test_counts_and_rates(text: str, kept: bool, words: str) -> None:
    assert held(text) == (kept, words)


def test_a_rate_is_compared_exactly() -> None:
    few = (outcome(cell(), [*broken(1), *fine(999)]),)
    assert held("violation_rate == 0.1%", few)[0]
    assert not held("violation_rate > 0.1%", few)[0]


@pytest.mark.parametrize(
    ("text", "kept", "words"),
    [
        ("p(99) free_again < 3s", True, "p(99) is 2.100 s of 20 measurements, in etcd::pause[1]"),
        (
            "p(50) free_again < 900ms",
            False,
            "p(50) is 900 ms of 20 measurements, in etcd::pause[1]",
        ),
        ("max free_again <= 2.1s", True, "max is 2.100 s of 20 measurements, in etcd::pause[1]"),
        ("mean free_again < 1500ms", False, "mean is 1.500 s of 20 measurements"),
        ("min free_again >= 900ms", True, "min is 900 ms of 20 measurements, in etcd::pause[1]"),
        (
            "max ungranted(etcd*) < 3s",
            False,
            "max is 4.000 s of 10 measurements, in etcd::pause[1]",
        ),
        ("p(50) seconds < 2", True, "p(50) is 1.000 s of 29 measurements, in redis::pause[1]"),
    ],
)
def test_measurements(text: str, kept: bool, words: str) -> None:
    assert held(text) == (kept, words)


def test_grants_a_second() -> None:
    quick = fine(1, counts={"acquisitions": 300}, lasted_ms=10_000.0)
    slow = fine(1, counts={"acquisitions": 100}, lasted_ms=10_000.0)
    outcomes = (outcome(cell(), [*quick, *slow]),)
    words = "mean is 20.0 of 2 measurements"
    assert held("mean grants_per_second >= 20", outcomes) == (True, words)
    assert held("mean grants_per_second > 20.5", outcomes) == (False, words)
    assert held("min grants_per_second > 20", outcomes)[1].endswith("in redis::pause[2]")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("violations == 0", "no run has an answer"),
        ("unexpected == 0", "no run has an answer"),
        ("violation_rate == 0%", "no run has an answer"),
        ("unknown_rate < 5%", "no run was carried out"),
        ("max seconds < 5s", "nothing was measured: no run was carried out"),
        ("max ungranted < 5s", "nothing was measured: no lock was asked for"),
        ("min grants_per_second < 5", "nothing was measured: no run was carried out"),
        (
            "max free_again < 5s",
            "nothing was measured: no lock was granted again whose holder had ended",
        ),
        ("violations(etcd*) == 0", "no cell is called etcd*"),
        ("p(9) seconds(etcd*) < 5s", "no cell is called etcd*"),
    ],
)
def test_what_could_not_be_measured_is_not_kept(text: str, words: str) -> None:
    assert held(text, (outcome(cell(), error(3)),)) == (None, words)


def test_what_is_known_is_no_longer_unexpected() -> None:
    outcomes = (outcome(cell(), broken(2)),)
    rule = parse("unexpected == 0")
    assert measured(rule, outcomes, {"redis::pause[1]"}).measured == "1 of 2 runs"
    assert measured(rule, outcomes, {"redis::pause[1]", "redis::pause[2]"}).held


@pytest.mark.parametrize(
    ("text", "reason", "at", "cure"),
    [
        ("violation == 0", "'violation' is no number of a campaign", "violation", "violations"),
        ("", "a name is missing", "", "violations, unexpected"),
        ("max", "a name is missing", "", "violations, unexpected"),
        ("violations", "no comparison", "", "one of >="),
        ("violations = 0", "'=' compares nothing", "=", "one of >="),
        ("violations == ", "a limit is missing", "", "as in violations < 10"),
        ("violations == 0.5", "'0.5' is no limit of violations", "0.5", "as in 10"),
        ("violations == 5%", "'5%' is no limit of violations", "5%", "as in 10"),
        ("violations == 0 or so", "'0 or so' is no limit of violations", "0 or so", "as in 10"),
        ("unknown_rate < 5", "'5' is no limit of unknown_rate", "5", "as in 5%"),
        ("unknown_rate < 500 %", "no rate is above 100 %", "500 %", "as in 5%"),
        ("free_again < 3s", "free_again is measured many times", "free_again", "write p(50)"),
        ("max violations < 3", "violations is one number", "max", "leave out max"),
        ("p(0) free_again < 3s", "above 0", "(0)", "as in p(99)"),
        ("p(101) free_again < 3s", "up to 100", "(101)", "as in p(99)"),
        ("p(many) free_again < 3s", "p takes a percentage", "(many)", "as in p(99)"),
        ("p free_again < 3s", "p takes a percentage", "f", "as in p(99)"),
        ("p(99) free_again < soon", "'soon' is not a duration", "soon", "write it like 500ms"),
        ("max ungranted < 0s", "'0s' is too short", "0s", "give a duration above zero"),
        ("max grants_per_second < 3s", "'3s' is no limit of grants_per_second", "3s", "as in 20"),
    ],
)
def test_what_is_wrong_is_pointed_at(text: str, reason: str, at: str, cure: str) -> None:
    with pytest.raises(UserError) as raised:
        parse(text)
    first, line, under = raised.value.message.split("\n")
    assert first.startswith(f"threshold {text!r}: ")
    assert reason in first
    assert line.removeprefix("    ") == text
    start = under.removeprefix("    ").index("^")
    assert text[start : start + len(at)] == at
    assert len(under.strip()) == max(1, len(at))
    assert cure in raised.value.cure


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        rule = parse(text)
    except UserError:
        return
    assert rule.name in NAMES


VALUES = st.lists(st.floats(0, 1e6), min_size=1, max_size=50)


@given(VALUES, st.integers(1, 1000))
def test_a_percentile_is_one_of_the_values_with_enough_below(
    values: list[float], tenths: int
) -> None:
    percent = Fraction(tenths, 10)
    value = percentile(values, percent)
    assert value in values
    assert min(values) <= value <= max(values)
    assert Fraction(sum(each <= value for each in values), len(values)) * 100 >= percent
    assert Fraction(sum(each < value for each in values), len(values)) * 100 < percent
    assert percentile(values, 100) == max(values)
