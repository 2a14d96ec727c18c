"""Two campaigns side by side."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.matrix.comparing import Change, Rate, Rates, Spread, compared
from lockcheck.matrix.model import CellOutcome
from tests.matrix.cells import broken, cell, error, fine, outcome, unknown

MANY = "2 of 20 (10 %, 3 to 30 %) -> 18 of 20 (90 %, 70 to 97 %)"
FEW = "1 of 4 (25 %, 5 to 70 %) -> 3 of 4 (75 %, 30 to 95 %)"


def lines(before: list[CellOutcome], after: list[CellOutcome]) -> list[str]:
    return list(compared(before, after).lines())


def test_the_same_twice() -> None:
    both = [outcome(cell(), [*fine(3), *broken(), *unknown()]), outcome(cell("etcd"), error())]
    assert lines(both, both) == ["no difference in 2 cells"]
    assert lines([], []) == ["no difference in 0 cells"]


def test_verdicts_that_moved_the_worst_first() -> None:
    before = [outcome(cell(), [*broken(), *fine(3), *error()])]
    after = [outcome(cell(), [*fine(), *unknown(), *broken(), *error(), *fine()])]
    comparison = compared(before, after)
    assert [str(moved) for moved in comparison.trials] == [
        "redis::pause[3]: ok -> violation",
        "redis::pause[4]: ok -> error",
        "redis::pause[2]: ok -> unknown",
        "redis::pause[1]: violation -> ok",
        "redis::pause[5]: error -> ok",
    ]
    assert comparison.cells == ()  # it is red as before


def test_trials_that_are_in_one_only_have_not_moved() -> None:
    assert compared([outcome(cell(), fine(1))], [outcome(cell(), fine(5))]).trials == ()


def test_cells_that_stand_otherwise() -> None:
    bad = cell(expect="violation", id_="bad")
    before = [outcome(cell(), fine(3)), outcome(bad, broken(3))]
    after = [outcome(bad, [*broken(2), *fine()]), outcome(cell(), [*fine(2), *broken()])]
    assert lines(before, after)[:6] == [
        "Cells that stand otherwise",
        "  redis::pause: as expected -> violation",
        "  bad: as expected -> missed",
        "Verdicts that moved",
        "  redis::pause[3]: ok -> violation",
        "  bad[3]: violation -> ok",
    ]


def test_a_cell_without_results_does_not_stand_otherwise() -> None:
    assert compared([outcome(cell(), [])], [outcome(cell(), fine(3))]).cells == ()


def test_cells_that_came_and_went() -> None:
    shared, old, new = (outcome(cell(name), fine()) for name in ("redis", "etcd", "consul"))
    assert lines([shared, old], [shared, new]) == [
        "Cells that came",
        "  consul::pause",
        "Cells that went",
        "  etcd::pause",
    ]


def test_rates_that_are_apart_come_first() -> None:
    names = ("redis", "etcd", "consul")
    few, lots, same = (cell(name, expect="any") for name in names)
    before = [
        outcome(few, [*broken(1), *fine(3)]),
        outcome(lots, [*broken(2), *fine(18)]),
        outcome(same, [*broken(1), *fine(3)]),
    ]
    after = [
        outcome(few, [*broken(3), *fine(1)]),
        outcome(lots, [*broken(18), *fine(2)]),
        outcome(same, [*broken(2), *fine(6)]),
    ]
    found = lines(before, after)
    assert found[found.index("Runs that broke (with the 95 % interval)") + 1 :] == [
        f"  etcd::pause: {MANY}: the intervals are apart",
        f"  redis::pause: {FEW}: the intervals overlap",
    ]
    assert len(compared(before, after).rates) == 3


def test_without_an_answer_there_is_no_rate() -> None:
    one, other = outcome(cell(), broken(3)), outcome(cell(), [*unknown(2), *error(1)])
    assert compared([one], [other]).rates == ()
    assert compared([other], [one]).rates == ()


RATE = st.integers(1, 300).flatmap(lambda n: st.builds(Rate, st.integers(0, n), st.just(n)))


@given(RATE, RATE)
def test_rates_are_apart_whichever_comes_first_and_never_if_equal(one: Rate, other: Rate) -> None:
    assert Rates("x", one, other).apart == Rates("x", other, one).apart
    assert not Rates("x", one, one).apart
    if one.share == other.share:
        assert not Rates("x", one, other).apart


# --- times and grants ----------------------------------------------------------------------------


def timed(of_ms: list[float], **given_: Any) -> CellOutcome:
    return outcome(cell(**given_), [fine(freed_ms=(ms,))[0] for ms in of_ms])


def test_times_that_changed() -> None:
    title, change = lines([timed([800, 1000, 1200])], [timed([1900, 2000, 9000])])
    assert title == "Times and grants that changed by 20 % or more"
    assert change == (
        "  redis::pause: free_again: median 1.000 s -> 2.000 s, 2.00 times; p99 1.200 s -> 9.000 s "
        "(3 and 3 measurements)"
    )


def test_small_changes_are_data_but_no_lines() -> None:
    comparison = compared([timed([1000])], [timed([1100])])
    assert [change.ratio for change in comparison.changes] == [1.1]
    assert list(comparison.lines()) == ["no difference in 1 cell"]


def test_the_largest_change_first_up_or_down() -> None:
    before = [timed([1000]), timed([1000], backend="etcd")]
    after = [timed([2000]), timed([100], backend="etcd")]
    _, first, second = lines(before, after)
    assert first.startswith("  etcd::pause: free_again: median 1.000 s -> 100 ms, 0.10 times")
    assert second.startswith("  redis::pause: ")


def test_all_that_is_compared() -> None:
    shown: dict[str, Any] = {"counts": {"acquisitions": 300}, "lasted_ms": 10_000.0}
    quick = outcome(cell(), fine(1, **shown, ungranted_ms=100.0))
    slow = outcome(cell(), fine(1, **shown | {"lasted_ms": 30_000.0}, ungranted_ms=2000.0))
    comparison = compared([quick], [slow])
    assert {change.measure: change.ratio for change in comparison.changes} == {
        "ungranted": 20.0,
        "grants_per_second": pytest.approx(1 / 3),
    }
    assert "grants_per_second: median 30.0 -> 10.0, 0.33 times" in "\n".join(comparison.lines())


def test_what_was_measured_in_one_only_is_not_compared() -> None:
    assert compared([timed([1000])], [outcome(cell(), fine())]).changes == ()


def test_from_nothing() -> None:
    some, none = Spread(1, 5.0, 5.0), Spread(1, 0.0, 0.0)
    assert Change("x", "ungranted", none, none).factor == 1
    from_nothing = Change("x", "ungranted", none, some)
    assert (from_nothing.ratio, from_nothing.factor) == (None, float("inf"))
    assert str(from_nothing) == (
        "x: ungranted: median 0 s -> 5.0 ms; p99 0 s -> 5.0 ms (1 and 1 measurement)"
    )
    assert Change("x", "ungranted", some, none).factor == float("inf")
