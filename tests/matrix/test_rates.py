"""Rates and their intervals."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.matrix.rates import at_most, interval, percent, rate_words

COUNTS = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (18, 20, 0.699, 0.972),
        (0, 20, 0.0, 0.161),
        (20, 20, 0.839, 1.0),
        (1, 1, 0.207, 1.0),
        (50, 100, 0.404, 0.596),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilsons_interval(k: int, n: int, low: float, high: float) -> None:
    assert interval(k, n) == pytest.approx((low, high), abs=0.0006)


@given(COUNTS)
def test_the_interval_holds_the_rate_that_was_seen(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = interval(k, n)
    assert 0 <= low <= k / n <= high <= 1
    assert low < high


@given(COUNTS)
def test_the_interval_of_the_others_is_its_mirror(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = interval(k, n)
    assert interval(n - k, n) == pytest.approx((1 - high, 1 - low))


@given(COUNTS)
def test_more_of_the_same_makes_it_narrower(counts: tuple[int, int]) -> None:
    k, n = counts
    few, many = interval(k, n), interval(4 * k, 4 * n)
    assert many[1] - many[0] < few[1] - few[0]


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_it_holds_the_true_rate_about_as_often_as_it_says(rate: float) -> None:
    n = 50
    within = 0.0
    for k in range(n + 1):
        low, high = interval(k, n)
        if low <= rate <= high:
            within += comb(n, k) * rate**k * (1 - rate) ** (n - k)
    assert 0.92 < within < 0.99


def test_words() -> None:
    assert rate_words(18, 20) == "18 of 20, 90 %, 95 % interval 70 to 97 %"
    assert rate_words(0, 20) == "none of 20: the true rate may be up to 15 %"
    assert rate_words(20, 20) == "20 of 20, 100 %, 95 % interval 84 to 100 %"
    assert rate_words(0, 2) == "none of 2: the true rate may be up to 100 %"
    assert rate_words(0, 0) == "none ran"


def test_what_came_never() -> None:
    assert [at_most(n) for n in (0, 2, 3, 20, 300)] == [1.0, 1.0, 1.0, 0.15, 0.01]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (1, "100 %"), (0.155, "16 %"), (1 / 300, "0.3 %"), (299 / 300, "99.7 %")],
)
def test_a_share_is_called_none_or_all_only_where_it_is(share: float, text: str) -> None:
    assert percent(share) == text
