"""What is unexpected of a cell, by the standing of its trials."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lockcheck.matrix.fingerprints import Fingerprint, kinds_asked, seen_in, unexpected
from lockcheck.matrix.judging import standing_of_cell
from lockcheck.matrix.model import CellOutcome, Standing
from tests.matrix.cells import LATE, OVERLAP, broken, cell, error, fine, outcome, result, unknown

FOUND = "overlap under pause on redis, the lock service's fault"
MISSED = "under pause on redis, the violation that was expected did not come"
WANTING = "under pause on redis, the verdict was as expected, and what belongs to it was not"


def trials(of: CellOutcome) -> dict[int, list[str]]:
    """By seed."""
    seeds = {each.trial: each.seed for each in of.results}
    return {seeds[trial]: sorted(map(str, found)) for trial, found in unexpected(of).items()}


def test_a_violation_where_none_is_to_come() -> None:
    runs = [*fine(), *broken(), *unknown(), *error(), *broken(1, OVERLAP, LATE)]
    late = "overlap under pause on redis, the holder's fault"
    assert trials(outcome(cell(), runs)) == {2: [FOUND], 5: [late, FOUND]}


def test_what_a_guard_kept_from_doing_harm_does_not_count() -> None:
    kept = msgspec.structs.replace(OVERLAP, effect="ok")
    assert trials(outcome(cell(), [result("ok", kept)])) == {}


def test_a_violation_that_did_not_come() -> None:
    runs = [*broken(), *fine(), *unknown()]
    assert trials(outcome(cell(expect="violation"), runs)) == {2: [MISSED]}


def test_a_violation_of_another_kind() -> None:
    by_holder = cell(expect="violation", blame="holder")
    assert trials(outcome(by_holder, broken(1, LATE))) == {}
    assert trials(outcome(by_holder, broken(1, LATE, OVERLAP))) == {1: [FOUND]}
    stale = cell(expect="violation", findings=("stale-write",))
    assert trials(outcome(stale, broken())) == {1: [WANTING]}


def test_what_a_run_did_not_show() -> None:
    assert trials(outcome(cell(), fine(1, wanting=("only 3 acquisitions",)))) == {1: [WANTING]}


@pytest.mark.parametrize("expect", ["any", "violation", "violation >= 0.5", "ok <= 0.5"])
def test_an_expected_violation_is_none(expect: str) -> None:
    assert trials(outcome(cell(expect=expect), broken(2))) == {}


@pytest.mark.parametrize(
    ("expect", "found"),
    [
        ("violation >= 0.8", {3: [MISSED]}),
        ("violation > 0.6", {}),
        ("violation <= 0.5", {1: [FOUND], 2: [FOUND]}),
        ("ok >= 0.5", {1: [FOUND], 2: [FOUND]}),
        ("ok >= 0.3", {}),
        ("violation == 0.5", {3: [MISSED]}),
    ],
)
def test_a_share(expect: str, found: dict[int, list[str]]) -> None:
    assert trials(outcome(cell(expect=expect), [*broken(2), *fine()])) == found


@pytest.mark.parametrize(
    ("expect", "runs"),
    [("violation == 0.5", broken(2)), ("ok < 0.5", fine(2)), ("violation >= 0.5", fine(2))],
)
def test_each_share_that_does_not_hold_is_unexpected(
    expect: str, runs: list[dict[str, Any]]
) -> None:
    of = outcome(cell(expect=expect), runs)
    assert standing_of_cell(of) in (Standing.MISSED, Standing.VIOLATION)
    assert len(trials(of)) == 2


def test_without_an_answer_nothing_is_unexpected() -> None:
    assert trials(outcome(cell(expect="violation >= 0.8"), [*unknown(), *error()])) == {}


def test_how_often_of_those_that_had_it() -> None:
    one = outcome(cell(), [*broken(2), *fine(1), *unknown()])
    other = outcome(cell(id_="redis::pause::ttl=2s"), [*broken(1), *fine(4)])
    without = outcome(cell(id_="redis::pause::ttl=9s"), fine(7))
    ((fingerprint, seen),) = seen_in([one, other, without]).items()
    assert str(fingerprint) == FOUND
    assert str(seen) == "3 of 8 runs"
    assert seen.cells == {"redis::pause", "redis::pause::ttl=2s"}


@pytest.mark.parametrize(
    ("fingerprint", "words"),
    [
        (Fingerprint("stuck", "etcd", "", "service"), "stuck without a fault on etcd, the lock"),
        (Fingerprint("overlap", "etcd", "kill", "unknown"), "on etcd, whose fault is not known"),
        (Fingerprint("missed", "etcd", ""), "without a fault on etcd, the violation that was"),
    ],
)
def test_words(fingerprint: Fingerprint, words: str) -> None:
    assert words in str(fingerprint)


def test_the_faults_of_a_cell() -> None:
    both = cell(nemesis=("pause then kill:holder", "all", "pause:server"))
    assert kinds_asked(both) == ("pause", "kill", "all")
    assert kinds_asked(cell(nemesis="none")) == ()
