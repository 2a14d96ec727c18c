"""Which runs a sweep consists of."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.durations import DurationRange
from lockcheck.errors import UserError
from lockcheck.matrix.folder import Plan
from lockcheck.sweep.grid import Grid, grid_of, pause_ms, plan_of, spaced
from tests.sweep.made_up import REDIS, plan

HALF_TO_8 = DurationRange(500, 8000)


def test_the_steps_are_as_many_and_each_as_much_longer_in_round_numbers() -> None:
    assert spaced(HALF_TO_8, 6) == (500, 870, 1500, 2600, 4600, 8000)
    assert spaced(DurationRange(100, 5000), 5) == (100, 270, 710, 1900, 5000)
    assert spaced(DurationRange(1, 3), 6) == (1, 2, 3)
    assert spaced(HALF_TO_8, 1) == (8000,)
    assert spaced(2000, 6) == (2000,)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(2, 20))
def test_they_go_from_end_to_end_and_grow(low: int, more: int, number: int) -> None:
    steps = spaced(DurationRange(low, low + more), number)
    assert (steps[0], steps[-1]) == (low, low + more)
    assert len(steps) <= number


def test_leases_are_such_as_the_lock_takes() -> None:
    grid = grid_of(HALF_TO_8, 1000, "6x5", ttl_step_ms=1000)
    assert grid == Grid((1000, 2000, 3000, 5000, 8000), (1000,))


@pytest.mark.parametrize("steps", ["6", "6x", "0x5", "6x5x4", "-1x2", "100x100"])
def test_what_is_no_grid_is_refused(steps: str) -> None:
    with pytest.raises(UserError, match="is no grid"):
        grid_of(HALF_TO_8, 1000, steps)


def test_a_cell_for_each_lease_and_pause_and_one_for_crashes() -> None:
    cells = plan(Grid((1000, 2000), (500, 3000))).cells
    assert [cell.id for cell in cells] == [
        "redis::pause:holder,for=500ms::ttl=1s",
        "redis::pause:holder,for=3s::ttl=1s",
        "redis::kill:holder,restart=1s::ttl=1s",
        "redis::pause:holder,for=500ms::ttl=2s",
        "redis::pause:holder,for=3s::ttl=2s",
        "redis::kill:holder,restart=1s::ttl=2s",
    ]
    assert [pause_ms(cell.config) for cell in cells] == [500, 3000, None] * 2
    assert [len(cell.seeds) for cell in cells] == [2, 2, 1] * 2
    assert {cell.expectation.verdict for cell in cells} == {"any"}


def test_each_run_is_long_enough_for_its_faults_unless_its_time_is_given() -> None:
    for cell in plan(Grid((500, 8000), (100, 5000))).cells:
        lasts_ms = 2 * (pause_ms(cell.config) or cell.config.ttl_ms / 2)
        assert cell.config.time_limit_ms > lasts_ms + 2000
    asked = msgspec.structs.replace(REDIS, time_limit_ms=7000)
    fixed = plan_of(Grid((500,), (100, 9000)), asked, 1, fixed_time=True)
    assert {cell.config.time_limit_ms for cell in fixed.cells} == {7000}
    [left_out] = fixed.left_out
    assert "for=9s" in left_out
    assert "the run ends after 7s" in left_out


def test_what_fits_nowhere_is_refused_with_the_cause() -> None:
    with pytest.raises(UserError, match="longer than the whole run"):
        plan_of(
            Grid((500,), (100,)),
            msgspec.structs.replace(REDIS, think_ms=20_000),
            1,
            fixed_time=True,
        )


def test_where_it_is_kept_and_which_seed_came_up_make_no_other_plan() -> None:
    def digest(out: str, seed: int) -> str:
        asked = msgspec.structs.replace(REDIS, out=out, seed=seed)
        return plan(Grid((500,), (100,)), asked).digest

    assert digest("here", 1) == digest("there", 7)


def test_a_plan_reads_back_with_its_ranges() -> None:
    whole = plan(Grid((500,), (100,)))
    assert msgspec.json.decode(msgspec.json.encode(whole), type=Plan) == whole
    assert "--think 50ms..300ms" in whole.trials[0].config.command()
