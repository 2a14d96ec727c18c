"""The same plan is the same history, to the last nanosecond and in every process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lockcheck.history import History, read_history, write_events
from lockcheck.history.event import encode_event
from tests.simulation import LOCKS, Plan, simulate, simulated_events
from tests.simulation.combinations import COMBINATIONS, guarded_by_cas

SEEDS = range(10)
SCRIPT = "from tests.simulation.test_determinism import fingerprint; print(fingerprint())"
# Changes whenever what is simulated does, and then on every machine and Python alike.
KNOWN = "6b244448282ee91c"


def fingerprint() -> str:
    """Of what every combination does with its first seeds."""
    digest = hashlib.sha256()
    for plan_of in COMBINATIONS.values():
        for seed in SEEDS:
            for event in simulated_events(plan_of(seed))[1:]:  # the terms are not simulated
                digest.update(encode_event(event))
    return digest.hexdigest()[:16]


def test_it_is_known() -> None:
    assert fingerprint() == KNOWN


@pytest.mark.parametrize("hash_seed", ["0", "1", "4711"])
def test_the_hashes_of_a_process_do_not_matter(hash_seed: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == fingerprint()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_lock_repeats_itself(lock: str) -> None:
    plan = replace(guarded_by_cas(3), lock=lock)
    assert simulate(plan) == simulate(plan)


def test_another_seed_is_another_history() -> None:
    times = {tuple(e.time for e in simulated_events(Plan(seed=seed))) for seed in SEEDS}
    assert len(times) == len(SEEDS)


def test_it_is_a_history_like_any_other(tmp_path: Path) -> None:
    told = simulated_events(guarded_by_cas(5))
    write_events(tmp_path / "history.jsonl", told)
    read = read_history(tmp_path / "history.jsonl")
    assert read.events[1:] == tuple(told[1:])
    assert read.terms == History.of(told).terms


def test_time_never_runs_backwards() -> None:
    for seed in SEEDS:
        times = [event.time for event in simulated_events(guarded_by_cas(seed))]
        assert times == sorted(times)
