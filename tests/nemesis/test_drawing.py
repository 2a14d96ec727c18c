"""`all` is a sequence of what applies, drawn by the seed, and written down as what it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockcheck.backends import BACKENDS
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.nemesis import FAULTS, draw, parse_nemesis
from lockcheck.nemesis.base import Refusal
from lockcheck.nemesis.drawing import applicable
from lockcheck.nemesis.fitting import GAP_MS
from lockcheck.run.resolve import planned, resolve
from tests.nemesis.plans import check_nemesis, plan

SEEDS = range(12)
PLAN = plan("etcd", 3, stores=True, writes=True, leads=True)
LONG = replace(PLAN, time_limit_ms=10_000_000)


def test_the_seed_decides_and_several_differ() -> None:
    draws = {draw(["all"], replace(PLAN, seed=seed)) for seed in SEEDS}
    assert draws == {draw(["all"], replace(PLAN, seed=seed)) for seed in SEEDS}
    assert len(draws) > len(SEEDS) / 2
    one, named, other = draw(["all", "pause", "all"], replace(PLAN, seed=1))
    assert named == "pause"
    assert one != other


@pytest.mark.parametrize("name", BACKENDS)
def test_what_is_drawn_can_be_run(name: str) -> None:
    for seed in SEEDS:
        plan = planned(RunConfig(backend=name, seed=seed, nemesis=("all",)))
        assert "all" not in plan.config.nemesis
        assert planned(plan.config) == resolve(plan.config) == plan
        assert "--nemesis all" not in plan.config.command()


def test_all_that_applies_is_drawn_once_where_there_is_time() -> None:
    (text,) = draw(["all"], replace(LONG, seed=1))
    steps = parse_nemesis(text)
    able = [str(step) for kind in FAULTS.values() for step in applicable(kind, LONG)]
    drawn_ones = {str(step).partition(",when=")[0] for step in steps}
    assert len(steps) == len(able)
    assert drawn_ones == {step.partition(",when=")[0] for step in able}
    kinds = {step.kind.name for step in steps}
    assert {step.kind.name for step in steps[: len(kinds)]} == kinds  # by turns
    assert {step.trigger(LONG) for step in steps} > {step.kind.when(step, LONG) for step in steps}


@pytest.mark.parametrize("name", ["etcd", "zookeeper", "zookeeper-rw", "postgres-row"])
def test_what_is_drawn_leaves_time_for_a_busy_machine(name: str) -> None:
    """With the longest pauses before them, all that are drawn have their turn in time to spare."""
    for seed in SEEDS:
        plan = planned(RunConfig(backend=name, seed=seed, nemesis=("all",)))
        [steps] = plan.nemesis
        needs_ms = sum(GAP_MS[1] + (step.lasts_ms(plan.faults) or 0) for step in steps)
        assert needs_ms <= 0.75 * plan.config.time_limit_ms


def test_what_cannot_be_is_not_drawn() -> None:
    alone = replace(LONG, servers=1, leads=False, writes=False, stores=False)
    for seed in SEEDS:
        texts = draw(["all"], replace(alone, seed=seed))
        check_nemesis(texts, alone)
        assert not [word for word in ("leader", "minority", "storage", "write") if word in texts[0]]


def test_what_this_machine_lacks_is_not_drawn() -> None:
    kind = replace(FAULTS["pause"], lacks=lambda _step: Refusal("there is none", "get one"))
    assert not list(applicable(kind, PLAN))


def test_where_nothing_fits_it_is_said() -> None:
    with pytest.raises(UserError, match="no fault fits") as caught:
        draw(["all"], replace(PLAN, time_limit_ms=1000))
    assert "--time-limit" in caught.value.cure


def test_it_stands_alone() -> None:
    with pytest.raises(UserError, match="'all' cannot be combined or aimed"):
        parse_nemesis("all then pause")
