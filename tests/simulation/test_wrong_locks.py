"""Each wrong lock is caught by the judges that it is meant for; the right one beside it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockcheck.checker import CHECKS, judge
from tests.checker.dsl import codes
from tests.simulation import LOCKS, Fault, FaultKind, Nesting, Plan, Target, simulate

SEEDS = range(12)
HOLDERS = Fault(FaultKind.PAUSE, Target.HOLDER, (110, 180), gap_ms=(10, 40))
CUT_OFF = Fault(FaultKind.PARTITION, Target.HOLDER, (110, 200), gap_ms=(10, 40))
AMNESIA = Fault(FaultKind.AMNESIA, Target.SERVER, (1, 5))
BASE = Plan(seed=0, until_ms=1_200, clients=4)

# What brings each of them out; where one plan does not do for all its codes, by code.
PLANS: dict[str, Plan] = {
    "blind": replace(BASE, faults=(HOLDERS,), until_ms=2_500),
    "generous": BASE,
    "hasty": replace(BASE, think_ms=(8, 20)),
    "hasty/silent-loss": replace(BASE, think_ms=(64, 70)),
    "repeating": BASE,
    "lowering": BASE,
    "reviving": replace(BASE, faults=(HOLDERS,), renews=True, until_ms=2_500),
    "eternal": replace(BASE, faults=(CUT_OFF,), until_ms=2_800, calm_ms=2_200),
    "patient": replace(BASE, keys=2, nesting=Nesting.ANY),
    "lingering": replace(BASE, until_ms=4_000),
    "ignored": BASE,
    "unfair": BASE,
    "minority": BASE,
}
RIGHT = {
    "repeating": "fenced",
    "lowering": "fenced",
    "unfair": "queue",
    "patient": "queue",
    "minority": "majority",
}
WRONG = [(name, code) for name, kind in LOCKS.items() for code in kind.caught_by]


def plan_for(lock: str, code: str) -> Plan:
    return PLANS.get(f"{lock}/{code}", PLANS[lock])


def caught(plan: Plan, code: str) -> int:
    """In this many of the runs."""
    runs = (judge(simulate(replace(plan, seed=seed))) for seed in SEEDS)
    return sum(code in codes(run) for run in runs)


@pytest.mark.parametrize(("lock", "code"), WRONG)
def test_a_wrong_lock_is_caught(lock: str, code: str) -> None:
    assert caught(replace(plan_for(lock, code), lock=lock), code) > len(SEEDS) // 2


@pytest.mark.parametrize(("lock", "code"), WRONG)
def test_the_right_one_is_not(lock: str, code: str) -> None:
    """Under the same plan; what it is accused of with long pauses is another matter."""
    right = replace(plan_for(lock, code), lock=RIGHT.get(lock, "single"))
    assert caught(right, code) == 0


def test_every_wrong_lock_has_a_plan_and_a_judge() -> None:
    assert {code for _, code in WRONG} <= set(CHECKS)
    assert {name.partition("/")[0] for name in PLANS} == {
        name for name, kind in LOCKS.items() if kind.caught_by
    }


@pytest.mark.parametrize("code", ["overlap", "token-regression"])
def test_a_server_that_forgets_gives_tokens_again(code: str) -> None:
    assert caught(replace(BASE, lock="fenced", faults=(AMNESIA,)), code) > len(SEEDS) // 2
    assert caught(replace(BASE, lock="fenced"), code) == 0


def test_patience_does_no_harm_where_all_take_their_locks_in_one_order() -> None:
    ordered = replace(PLANS["patient"], lock="patient", nesting=Nesting.ORDERED)
    assert caught(ordered, "deadlock") == 0


def test_two_holders_run_the_same_job() -> None:
    jobs = replace(BASE, jobs=True, faults=(HOLDERS,), until_ms=2_500)
    assert caught(jobs, "double-run") > len(SEEDS) // 2
    assert caught(replace(jobs, guard="cas"), "double-run") == 0
