"""Locks that are known to be right or wrong, each under one kind of fault: who is to blame."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from lockcheck.checker import Culprit, Judgement, Verdict, judge
from tests.checker.dsl import codes
from tests.simulation import Fault, FaultKind, Plan, Target, simulate

SEEDS = range(25)
TTL_MS = 100
# The next one comes when whoever was struck has let go.
SHORT_PAUSES = Fault(FaultKind.PAUSE, Target.HOLDER, (1, 60), gap_ms=(60, 100))
LONG_PAUSES = Fault(FaultKind.PAUSE, Target.HOLDER, (50, 300))
AMNESIA = Fault(FaultKind.AMNESIA, Target.SERVER, (1, 5))
CLOCK_JUMP = Fault(FaultKind.CLOCK_JUMP, Target.SERVER, (1, 20), jump_ms=200)


def plan(seed: int, *faults: Fault, **more: Any) -> Plan:
    settings: dict[str, Any] = {"lock": "fenced", "until_ms": 2_000, **more}
    return Plan(seed=seed, faults=faults, ttl_ms=TTL_MS, **settings)


@cache
def judged(seed: int, *faults: Fault, **more: Any) -> Judgement:
    return judge(simulate(plan(seed, *faults, **more)))


def blamed(judgement: Judgement) -> set[Culprit]:
    return {finding.blame.who for finding in judgement.findings}


@pytest.mark.parametrize("seed", SEEDS)
def test_pauses_shorter_than_the_lease_harm_no_lock(seed: int) -> None:
    """A hold takes less than 20 ms, so with a pause of 60 it is over before its lease."""
    judgement = judged(seed, SHORT_PAUSES)
    assert (judgement.findings, judgement.doubts) == ((), ())
    assert judgement.verdict is Verdict.OK
    assert judgement.counts.acquisitions > 20
    assert judgement.counts.faults > 3


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("guard", ["fence", "cas"])
def test_a_guard_is_never_accused(seed: int, guard: str) -> None:
    judgement = judged(seed, LONG_PAUSES, guard=guard)
    assert judgement.verdict is Verdict.OK
    assert blamed(judgement) <= {Culprit.HOLDER}
    assert all(finding.effect is Verdict.OK for finding in judgement.findings)


def test_the_guards_had_something_to_refuse() -> None:
    runs = [judged(seed, LONG_PAUSES, guard="fence") for seed in SEEDS]
    assert sum(run.counts.stale_writes_refused for run in runs) > len(runs) // 2
    assert all(run.counts.stale_writes_refused == run.counts.writes_refused for run in runs)
    assert any("overlap" in codes(run) for run in runs)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_a_guard_long_pauses_are_the_holders_fault(seed: int) -> None:
    judgement = judged(seed, LONG_PAUSES)
    assert judgement.verdict is Verdict.VIOLATION
    assert blamed(judgement) == {Culprit.HOLDER}
    assert all(finding.blame.fault for finding in judgement.findings)


def test_without_a_guard_the_data_suffer() -> None:
    found = {code for seed in SEEDS for code in codes(judged(seed, LONG_PAUSES))}
    assert {"overlap", "stale-write", "lost-update"} <= found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", [AMNESIA, CLOCK_JUMP], ids=lambda fault: fault.name)
@pytest.mark.parametrize("lock", ["single", "fenced", "queue"])
def test_a_server_that_forgets_or_jumps_is_to_blame(seed: int, fault: Fault, lock: str) -> None:
    judgement = judged(seed, fault, lock=lock)
    assert blamed(judgement) <= {Culprit.SERVICE}
    told = [finding.blame.fault for finding in judgement.findings]
    assert all(known is None or known.name == fault.kind for known in told)
    assert seed > 0 or any(told)


@pytest.mark.parametrize("fault", [AMNESIA, CLOCK_JUMP], ids=lambda fault: fault.name)
def test_a_server_that_forgets_or_jumps_lets_somebody_in(fault: Fault) -> None:
    """Nearly always: it can strike when nobody holds the lock."""
    runs = [judged(seed, fault) for seed in SEEDS]
    assert sum(run.verdict is Verdict.VIOLATION for run in runs) > len(runs) * 3 / 4


def test_a_majority_survives_one_that_forgets_where_a_single_server_does_not() -> None:
    """Not always: the one that forgot can be the one that two majorities share."""
    single = [judged(seed, AMNESIA, lock="single") for seed in SEEDS]
    majority = [judged(seed, AMNESIA, lock="majority") for seed in SEEDS]
    assert sum(len(run.findings) for run in majority) < sum(len(run.findings) for run in single) / 4


@pytest.mark.parametrize("seed", SEEDS)
def test_a_blind_release_is_never_taken_for_the_service(seed: int) -> None:
    assert blamed(judged(seed, LONG_PAUSES, lock="blind")) <= {Culprit.HOLDER, Culprit.CLIENT}


def test_blind_releases_are_found() -> None:
    runs = [judged(seed, LONG_PAUSES, lock="blind") for seed in SEEDS]
    assert sum("foreign-release" in codes(run) for run in runs) > len(runs) // 3
    harmless = [judged(seed, SHORT_PAUSES, lock="blind") for seed in SEEDS]
    assert {run.verdict for run in harmless} == {Verdict.OK}
