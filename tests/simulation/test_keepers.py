"""Keepers that renew beside their clients, and sessions that nobody sees being kept alive."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from lockcheck.checker import Culprit, Judgement, Verdict, judge
from lockcheck.checker.doubt import DoubtCode
from lockcheck.history import F
from tests.checker.dsl import codes
from tests.simulation import Fault, FaultKind, Plan, Target, simulate
from tests.simulation.combinations import COMBINATIONS, TTL_MS
from tests.simulation.soak import accusations

SEEDS = range(40)
KEEPER_MS = TTL_MS // 3
THINKING = ((1, 6), (20, 60), (50, 120))  # the last is longer than the lease: a keeper is needed
LONG_PAUSES = Fault(FaultKind.PAUSE, Target.HOLDER, (130, 300), gap_ms=(20, 60))
CUT_OFF = Fault(FaultKind.PARTITION, Target.HOLDER, (130, 300), gap_ms=(20, 60))


def kept(plan: Plan, seed: int, *, session: bool) -> Plan:
    return replace(
        plan,
        keeper_ms=KEEPER_MS,
        think_ms=THINKING[seed % 3],
        renews=False,
        session=session,
        until_ms=plan.until_ms + 500,
    )


@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("combination", COMBINATIONS)
def test_right_locks_with_keepers_are_never_accused(combination: str, session: bool) -> None:
    verdicts: Counter[Verdict] = Counter()
    for seed in range(150):
        history = simulate(kept(COMBINATIONS[combination](seed), seed, session=session))
        judgement = judge(history)
        assert accusations(history, judgement) == (), (seed, combination)
        assert DoubtCode.UNDECIDED not in {doubt.code for doubt in judgement.doubts}
        verdicts[judgement.verdict] += 1
    assert verdicts[Verdict.OK] > 40  # of the others a fault found no time


BASE = Plan(
    seed=0, clients=3, ttl_ms=TTL_MS, keeper_ms=KEEPER_MS, think_ms=(60, 130), until_ms=2_500
)
LOCKS = ("single", "fenced", "queue")


def judged(seed: int, lock: str, *faults: Fault, session: bool = False) -> Judgement:
    return judge(simulate(replace(BASE, seed=seed, lock=lock, faults=faults, session=session)))


def blamed(judgement: Judgement) -> set[Culprit]:
    return {finding.blame.who for finding in judgement.findings}


@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("lock", LOCKS)
def test_what_a_keeper_keeps_is_held_for_longer_than_a_lease(lock: str, session: bool) -> None:
    for seed in range(5):
        history = simulate(replace(BASE, seed=seed, lock=lock, session=session))
        judgement = judge(history)
        assert (judgement.findings, judgement.doubts) == ((), ())
        assert judgement.counts.acquisitions > 8
        assert any(operation.f == F.RENEW for operation in history.operations) is not session
        longest = max(hold.end_ns - hold.start_ns for hold in history.holds)
        assert longest > 1.5 * TTL_MS * 1e6


@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("lock", LOCKS)
def test_a_paused_holder_is_never_the_services_fault(lock: str, session: bool) -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        judgement = judged(seed, lock, LONG_PAUSES, session=session)
        assert blamed(judgement) <= {Culprit.HOLDER}, seed
        found.update(set(codes(judgement)))
    assert found["overlap"] > len(SEEDS) / 4


@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("lock", LOCKS)
def test_nor_is_one_that_was_cut_off(lock: str, session: bool) -> None:
    for seed in SEEDS:
        assert blamed(judged(seed, lock, CUT_OFF, session=session)) == {Culprit.HOLDER}, seed


@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("lock", ["generous", "hasty"])
def test_who_is_let_in_while_a_keeper_renews_is_the_services_fault(
    lock: str, session: bool
) -> None:
    """Whether or not anybody saw it renew."""
    wrong = 0
    for seed in SEEDS:
        judgement = judged(seed, lock, session=session)
        overlaps = [finding for finding in judgement.findings if finding.code == "overlap"]
        assert {finding.blame.who for finding in overlaps} <= {Culprit.SERVICE}, seed
        wrong += bool(overlaps)
    assert wrong > len(SEEDS) / 2


def test_a_renewal_of_who_had_lost_it_is_found_if_a_keeper_made_it() -> None:
    found = Counter(code for seed in SEEDS for code in codes(judged(seed, "reviving", LONG_PAUSES)))
    assert found["revived"] > len(SEEDS) / 4
