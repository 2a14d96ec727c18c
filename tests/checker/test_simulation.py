"""Locks that are known to be right or wrong, under pauses: the judges say exactly that."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Culprit, Judgement, Verdict, judge
from lockcheck.history import Terms
from tests.checker.dsl import codes
from tests.checker.simulation import World

SEEDS = range(25)
TTL_MS = 100
LONG = (TTL_MS // 2, 3 * TTL_MS)  # some are shorter than the lease, some far longer


def terms(guard: str = "none", **more: Any) -> Terms:
    return Terms(
        backend="simulated", workload="register", guard=guard, ttl_ms=TTL_MS, clients=4, **more
    )


def blamed(judgement: Judgement) -> set[Culprit]:
    return {finding.blame.who for finding in judgement.findings}


@pytest.mark.parametrize("seed", SEEDS)
def test_pauses_shorter_than_the_lease_harm_no_lock(seed: int) -> None:
    """A hold takes less than 30 ms, so with a pause of 60 it is over before its lease."""
    judgement = judge(World(seed, terms(faults=("pause",)), pause_ms=(1, 60)).run())
    assert judgement.findings == ()
    assert judgement.doubts == ()
    assert judgement.verdict is Verdict.OK
    assert judgement.counts.acquisitions > 20


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("guard", ["fence", "cas"])
def test_a_guard_is_never_accused(seed: int, guard: str) -> None:
    judgement = judge(World(seed, terms(guard), pause_ms=LONG).run())
    assert judgement.verdict is Verdict.OK
    assert blamed(judgement) <= {Culprit.HOLDER}
    if guard == "fence":
        assert set(codes(judgement)) <= {"overlap"}


def test_the_guards_had_something_to_refuse() -> None:
    runs = [judge(World(seed, terms("fence"), pause_ms=LONG).run()) for seed in SEEDS]
    assert sum(run.counts.stale_writes_refused for run in runs) > len(runs)
    assert all(run.counts.stale_writes_refused == run.counts.writes_refused for run in runs)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_a_guard_long_pauses_are_the_holders_fault(seed: int) -> None:
    judgement = judge(World(seed, terms(), pause_ms=LONG).run())
    assert judgement.verdict is Verdict.VIOLATION
    assert blamed(judgement) == {Culprit.HOLDER}
    assert all(finding.blame.fault for finding in judgement.findings)


def test_without_a_guard_the_data_suffer() -> None:
    found = {
        code for seed in SEEDS for code in codes(judge(World(seed, terms(), pause_ms=LONG).run()))
    }
    assert found == {"overlap", "stale-write", "lost-update"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_service_that_forgets_is_blamed_and_nobody_else(seed: int) -> None:
    judgement = judge(World(seed, terms(), forgets=True).run())
    assert judgement.verdict is Verdict.VIOLATION
    assert blamed(judgement) == {Culprit.SERVICE}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_blind_release_is_never_taken_for_the_service(seed: int) -> None:
    judgement = judge(World(seed, terms(), pause_ms=LONG, blind=True).run())
    assert blamed(judgement) <= {Culprit.HOLDER, Culprit.CLIENT}


def test_blind_releases_are_found() -> None:
    runs = [judge(World(seed, terms(), pause_ms=LONG, blind=True).run()) for seed in SEEDS]
    assert sum("foreign-release" in codes(run) for run in runs) > len(runs) // 3
    harmless = [judge(World(seed, terms(), pause_ms=(1, 60), blind=True).run()) for seed in SEEDS]
    assert {run.verdict for run in harmless} == {Verdict.OK}


def test_the_same_seed_is_the_same_history() -> None:
    assert World(7, terms(), pause_ms=LONG).run() == World(7, terms(), pause_ms=LONG).run()
