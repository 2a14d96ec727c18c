"""Locks that are shared, entered again, or have permits: right ones are accused of nothing, and
what a paused holder does is told to be its own fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockcheck.checker import Code, Culprit, Judgement, Verdict, judge
from tests.simulation import Fault, FaultKind, Plan, Target, simulate
from tests.simulation.combinations import (
    COMBINATIONS,
    TTL_MS,
)

SEEDS = range(60)
LONGER_MS = 900  # than what does for a lock that one client holds at a time
LOCKS = ("readers", "nested", "permits")
LONG_PAUSES = Fault(FaultKind.PAUSE, Target.HOLDER, (50, 300))
JUMP = Fault(FaultKind.CLOCK_JUMP, Target.SERVER, (1, 20), jump_ms=200)


def plan_like(combination: str, lock: str, seed: int) -> Plan:
    """Renewals, and a second lock, are for locks that one client holds on one level."""
    plan = COMBINATIONS[combination](seed)
    keys = 1 if lock == "nested" else plan.keys
    renews, until_ms = plan.renews and lock != "nested", plan.until_ms + LONGER_MS
    return replace(plan, lock=lock, renews=renews, keys=keys, jobs=False, until_ms=until_ms)


def paused(lock: str, seed: int) -> Judgement:
    plan = Plan(seed=seed, lock=lock, faults=(LONG_PAUSES,), ttl_ms=TTL_MS, until_ms=2_000)
    return judge(simulate(replace(plan, clients=5)))


@pytest.mark.parametrize("lock", LOCKS)
def test_right_ones_are_never_accused(lock: str) -> None:
    verdicts = []
    for seed in SEEDS:
        judgement = judge(simulate(plan_like("none", lock, seed)))
        assert not judgement.findings, f"seed {seed}"
        verdicts.append(judgement.verdict)
    assert (
        verdicts.count(Verdict.OK) > len(SEEDS) / 3
    )  # the others: too few writes, or a fault found no time


@pytest.mark.parametrize("lock", ["readers", "nested"])
def test_behind_a_guard_nothing_counts(lock: str) -> None:
    found = 0
    for seed in SEEDS:
        judgement = judge(simulate(plan_like("cas", lock, seed)))
        assert judgement.verdict is not Verdict.VIOLATION, f"seed {seed}"
        found += bool(judgement.findings)
    assert found > len(SEEDS) / 4, "else there was nothing that could have counted"


@pytest.mark.parametrize("lock", LOCKS)
def test_a_paused_holder_is_to_blame(lock: str) -> None:
    runs = [paused(lock, seed) for seed in range(30)]
    for seed, run in enumerate(runs):
        blamed = {finding.blame.who for finding in run.findings}
        assert blamed <= {Culprit.HOLDER}, f"seed {seed}"
    found = [run for run in runs if run.of(Code.OVERLAP)]
    assert len(found) > len(runs) / 2
    if lock == "permits":
        assert all(len(f.holds) == 3 for run in found for f in run.of(Code.OVERLAP))


@pytest.mark.parametrize("lock", LOCKS)
def test_what_they_are_for_is_seen(lock: str) -> None:
    plan = Plan(seed=1, lock=lock, until_ms=2_000, clients=5)
    counts = judge(simulate(plan)).counts
    seen = (counts.shared_together > 1, counts.entered_deepest, counts.held_together)
    expected = {"readers": (True, 1, None), "nested": (False, 3, 1), "permits": (False, 1, 2)}
    assert [e for s, e in zip(seen, expected[lock], strict=True) if e not in (s, None)] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_service_whose_clock_jumps_is_accused(lock: str) -> None:
    plan = Plan(seed=0, lock=lock, faults=(JUMP,), ttl_ms=TTL_MS, until_ms=2_000, clients=5)
    # On several levels it takes as often as long, and all of it has to fit into a lease.
    plan = replace(plan, think_ms=(3, 6) if lock == "nested" else (5, 20))
    runs = [judge(simulate(replace(plan, seed=seed))) for seed in range(20)]
    told = {(f.code, f.blame.who) for run in runs for f in run.findings}
    assert (Code.OVERLAP, Culprit.SERVICE) in told
    assert {who for _, who in told} == {Culprit.SERVICE}
