"""Locks that are right are never accused, whatever strikes. Far more seeds: `soak.py`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from lockcheck.checker import Verdict, judge
from lockcheck.history import History
from tests.simulation import FaultKind, simulate
from tests.simulation.combinations import COMBINATIONS, unguarded
from tests.simulation.soak import accusations, soak, tried

SEEDS_EACH = 1_000
PARTS = 5  # so that a failure is seen early, and one knows how far it is


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("combination", COMBINATIONS)
def test_they_are_never_accused(combination: str, part: int) -> None:
    verdicts: Counter[Verdict] = Counter()
    for seed in range(part, SEEDS_EACH, PARTS):
        outcome = tried((seed, combination))
        assert outcome.accusations == (), f"python -m tests.simulation.soak --first {seed}"
        verdicts[outcome.verdict] += 1
    assert verdicts[Verdict.VIOLATION] == 0
    assert verdicts[Verdict.OK] > verdicts.total() / 2  # the others: a fault found no time


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_every_fault_strikes(combination: str) -> None:
    struck = Counter(fault.name for seed in range(200) for fault in run(combination, seed).faults)
    expected = set(FaultKind)
    if combination == "none":
        expected -= {FaultKind.AMNESIA, FaultKind.CLOCK_JUMP}
    if combination == "fence":
        expected -= {FaultKind.AMNESIA}
    assert set(struck) == {str(kind) for kind in expected}
    assert min(struck.values()) > 20


def test_they_would_be_accused_if_nothing_protected_them() -> None:
    """The same plans without what they rely on: the storage's guard, the look at the lease."""
    for combination in ("fence", "cas"):
        assert accused(combination, guard="none") > 10
    assert accused("none", check_validity=False) > 3


def test_the_guards_refuse_and_the_leases_run_out() -> None:
    for combination in ("fence", "cas"):
        runs = [judge(run(combination, seed)) for seed in range(200)]
        assert sum(judgement.counts.writes_refused for judgement in runs) > 20
    endings = Counter(hold.ending for seed in range(200) for hold in run("none", seed).holds)
    assert len(endings) == 4


def run(combination: str, seed: int) -> History:
    return simulate(COMBINATIONS[combination](seed))


def accused(combination: str, **changes: object) -> int:
    """By an overlap or worse that counts, in this many of 200 runs."""
    plans = [replace(COMBINATIONS[combination](seed), **changes) for seed in range(200)]  # type: ignore[arg-type]
    judgements = [judge(simulate(plan)) for plan in plans]
    return sum(judgement.verdict is Verdict.VIOLATION for judgement in judgements)


def test_the_soak_tells_how_to_see_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        COMBINATIONS, "none", lambda seed: replace(unguarded(seed), lock="generous")
    )
    assert soak(7, 5, 1, ["none"]) == 1
    said = capsys.readouterr().out
    assert "overlap by service" in said
    assert "again: python -m tests.simulation.soak --seeds 1 --first 7 --only none" in said


def test_the_soak_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak(0, 2, 1, list(COMBINATIONS)) == 0
    assert "100%  6 histories" in capsys.readouterr().out


def test_under_a_guard_only_what_counts_is_an_accusation() -> None:
    runs = [run("cas", seed) for seed in range(100)]
    found = [judge(history) for history in runs]
    assert any(judgement.findings for judgement in found)
    assert not any(map(accusations, runs, found))
