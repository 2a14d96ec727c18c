"""The search for the smallest run that breaks, by a lock of which it is known when it does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lockcheck.config import RunConfig
from lockcheck.hunting.attempts import Wanted, in_short
from lockcheck.hunting.shrinking import Shrinking, fits
from lockcheck.matrix.model import Found
from tests.matrix.made_up import result

WHOLE = RunConfig(
    backend="redis",
    seed=1,
    clients=9,
    keys=5,
    time_limit_ms=60_000,
    nemesis=("pause:holder then kill:server", "partition:holder"),
)


def smallest(breaks: Callable[[RunConfig], bool], whole: RunConfig = WHOLE) -> RunConfig:
    shrinking = Shrinking(whole, breaks)
    shrinking.shrink()
    return shrinking.smallest


def test_what_breaks_always_becomes_as_small_as_it_gets() -> None:
    found = smallest(lambda _: True)
    assert (found.clients, found.keys, found.time_limit_ms) == (2, 1, 1_000)
    assert found.nemesis == ("none",)


@pytest.mark.parametrize(
    ("needed", "left"),
    [
        ("pause", ("pause:holder",)),
        ("kill", ("kill:server",)),
        ("partition", ("partition:holder",)),
    ],
)
def test_only_the_fault_that_it_takes_is_left(needed: str, left: tuple[str, ...]) -> None:
    found = smallest(lambda config: any(needed in text for text in config.nemesis))
    assert found.nemesis == left
    assert (found.clients, found.keys) == (2, 1)


def test_two_faults_of_which_it_takes_both() -> None:
    found = smallest(lambda config: all(each in str(config.nemesis) for each in ("kill", "part")))
    assert found.nemesis == ("kill:server", "partition:holder")


@pytest.mark.parametrize("clients", range(2, 10))
@pytest.mark.parametrize("seconds", [1, 4, 7, 60])
def test_the_fewest_clients_and_seconds_are_found(clients: int, seconds: int) -> None:
    tried: list[RunConfig] = []

    def breaks(config: RunConfig) -> bool:
        tried.append(config)
        return config.clients >= clients and config.time_limit_ms >= 1_000 * seconds

    found = smallest(breaks, RunConfig(backend="redis", seed=1, clients=9, time_limit_ms=60_000))
    assert found.clients == clients
    assert found.time_limit_ms == {1: 1, 4: 4, 7: 8, 60: 60}[seconds] * 1_000
    assert len(tried) == len(set(tried)), "none is tried twice"


def test_runs_that_make_no_sense_are_not_tried() -> None:
    tried: list[RunConfig] = []

    def holds(config: RunConfig) -> bool:
        tried.append(config)
        return False

    smallest(holds)
    assert tried
    assert all(map(fits, tried))


def test_an_interruption_keeps_the_smallest_so_far() -> None:
    def breaks(config: RunConfig) -> bool:
        if config.nemesis != WHOLE.nemesis:
            raise KeyboardInterrupt
        return config.time_limit_ms >= 5_000

    shrinking = Shrinking(WHOLE, breaks)
    with pytest.raises(KeyboardInterrupt):
        shrinking.shrink()
    assert 5_000 <= shrinking.smallest.time_limit_ms < WHOLE.time_limit_ms


def test_the_same_violation_has_the_same_code_and_blame() -> None:
    late = Found(code="overlap", effect="violation", fault="", blame="holder")
    found = result("redis", 1, "violation", found=(late,))
    assert Wanted("overlap", "holder").among(found)
    assert not Wanted("overlap", "service").among(found)
    assert not Wanted("stale-write", "holder").among(found)
    assert not Wanted(not_the_holders=True).among(found)
    assert Wanted().among(found)
    kept_out = Found(code="overlap", effect="ok", fault="", blame="holder")
    guarded = result("redis", 1, "ok", found=(kept_out,))
    assert not Wanted().among(guarded)


def test_a_run_in_short() -> None:
    assert in_short(WHOLE).startswith("60s, 9 clients, 5 keys, ttl 1s, think 10ms: pause:holder")
