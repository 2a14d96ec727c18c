"""Jobs that ran twice, and those that did not."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Case, Culprit, Finding, Verdict
from lockcheck.checker.doubt import DoubtCode
from lockcheck.checker.judges.double_run import find
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import history, judged, ns


def found(*lines: str, **terms: Any) -> list[Finding]:
    return list(find(Case(history(*lines, ttl_ms=100, **terms))))


TWICE = """
    1 acquire 0-1
    2 acquire {granted}
    2 run {granted_run} job
    1 run {late} job
    1 release 400-401
    2 release 410-411"""

ACCEPTED = {
    "once each": "1 acquire 0-1 \n 1 run 2-3 a \n 1 run 4-5 b",
    "failed, and done again": "1 run 2-3! a \n 1 run 4-5 a",
    "nobody knows, and done again": "1 run 2-3? a \n 2 run 4-5 a",
    "never answered": "1 run 2- a \n 2 run 4-5 a",
    "the same name in another place": "1 run:x 2-3 a \n 1 run:y 4-5 a",
    "1 is not true": "1 run 2-3 1 \n 1 run 4-5 true",
    "no name": "1 run 2-3 \n 1 run 4-5",
}


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(lines: str) -> None:
    assert found(lines) == []


CLIENTS = {
    "without a lock": ("1 run 2-3 a \n 2 run 4-5 a", "without the lock"),
    "one of them without a lock": ("1 acquire 0-1 \n 1 run 2-3 a \n 2 run 4-5 a", "without"),
    "by one holder": ("1 acquire 0-1 \n 1 run 2-3 a \n 1 run 4-5 a", "One holder"),
    "by one client in two holds": (
        "1 acquire 0-1 \n 1 run 2-3 a \n 1 release 4-5 \n 1 acquire 6-7 \n 1 run 8-9 a",
        "same client",
    ),
    "the second one had only to look": (
        "1 acquire 0-1 \n 1 run 2-3 a \n 1 release 4-5 \n 2 acquire 6-7 \n 2 run 8-9 a",
        "done at 0.003 s, before n2 was granted",
    ),
}


@pytest.mark.parametrize(("lines", "said"), CLIENTS.values(), ids=CLIENTS)
def test_the_jobs_own_mark_is_missing(lines: str, said: str) -> None:
    (finding,) = found(lines)
    assert finding.blame.who is Culprit.CLIENT
    assert said in note(finding)
    assert [operation.f for operation in finding.operations] == ["run", "run"]


def test_a_holder_that_outlived_its_lease() -> None:
    lines = TWICE.format(granted="110-111", granted_run="120-121", late="130-131")
    (finding,) = found("fault pause n1 5-128", lines)
    assert (finding.blame.who, finding.blame.by_ns) == (Culprit.HOLDER, ns(30))
    assert finding.blame.fault
    assert [hold.process for hold in finding.holds] == [1, 2]
    assert [operation.process for operation in finding.operations] == [2, 1]
    assert (finding.time_ns, finding.length_ns) == (ns(131), ns(9))


def test_a_service_that_let_the_second_one_in_too_early() -> None:
    lines = TWICE.format(granted="50-51", granted_run="60-61", late="70-71")
    (finding,) = found(lines)
    assert finding.blame.who is Culprit.SERVICE


def test_three_times_is_twice_more() -> None:
    first, second = found("1 run 2-3 a \n 1 run 4-5 a \n 2 run 6-7 a")
    assert [o.start_ns for o in first.operations] == [ns(2), ns(4)]
    assert [o.start_ns for o in second.operations] == [ns(4), ns(6)]


@pytest.mark.parametrize("guard", ["none", "fence", "cas"])
def test_no_guard_makes_up_for_it(guard: str) -> None:
    lines = TWICE.format(granted="110-111", granted_run="120-121", late="130-131")
    assert [f.effect for f in found(lines, guard=guard)] == [Verdict.VIOLATION]


def test_what_the_machine_did_is_unknown() -> None:
    lines = TWICE.format(granted="110-111", granted_run="120-121", late="130-131")
    assert [f.effect for f in found(lines, "stall n1 5-128")] == [Verdict.UNKNOWN]
    doubts = judged(lines.replace("400-401", "132-133"), "stall n1 5-128", ttl_ms=100).doubts
    assert (DoubtCode.MACHINE_STALLED, "double-run") in {(d.code, d.check) for d in doubts}


@pytest.mark.parametrize(("shared", "permits"), [("shared=true", 1), ("", 2)])
def test_a_lock_that_lets_both_in_is_not_to_blame(shared: str, permits: int) -> None:
    lines = f"1 acquire 0-1 {shared} \n 2 acquire 3-4 {shared} \n 1 run 5-6 a \n 2 run 5-6 a"
    (finding,) = found(lines, permits=permits)
    assert finding.blame.who is Culprit.CLIENT
    assert "lets both in" in note(finding)


@pytest.mark.parametrize(
    ("done", "who"), [("9", Culprit.CLIENT), ("10", Culprit.SERVICE), ("11", Culprit.SERVICE)]
)
def test_done_before_the_other_one_was_let_in_or_not(done: str, who: Culprit) -> None:
    """Equal times are concurrent: then it could not have been seen to be done."""
    lines = (
        f"1 acquire 0-1 \n 1 run 2-{done} a \n 2 acquire 5-10 \n 2 run 12-13 a \n 1 release 20-21"
    )
    (finding,) = found(lines)
    assert finding.blame.who is who


@pytest.mark.parametrize(("lines", "said"), CLIENTS.values(), ids=CLIENTS)
def test_nobody_was_late_where_the_mark_is_missing(lines: str, said: str) -> None:
    (finding,) = found(lines)
    assert said in note(finding)
    assert finding.blame.by_ns == 0


def test_the_one_hold_that_there_was_is_shown() -> None:
    (finding,) = found("1 acquire 0-1 \n 1 run 2-3 a \n 2 run 4-5 a")
    assert [hold.process for hold in finding.holds] == [1]
    assert finding.length_ns == ns(1)


def test_two_runs_at_once_are_no_time_apart() -> None:
    (finding,) = found("1 run 2-9 a \n 2 run 4-5 a")
    assert finding.length_ns == 0
