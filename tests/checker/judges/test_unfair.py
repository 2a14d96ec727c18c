"""A queue in which somebody was passed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker import Case, Culprit, Finding, Verdict
from lockcheck.checker.judges.unfair import find
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import history, ns


def found(*lines: str, **terms: Any) -> list[Finding]:
    terms = {"fair": True, "ttl_ms": 100} | terms
    return list(find(Case(history(*lines, **terms))))


PASSED = """
    9 acquire 0-1
    1 acquire 2-{waited}
    1 queued 5
    2 acquire 10-{granted}
    9 release 20-21
    2 release 860-861
    1 release 900-901"""


def passed(waited: str = "70", granted: str = "30") -> str:
    return PASSED.format(waited=waited, granted=granted)


def test_it_asked_later_and_was_granted_first() -> None:
    (finding,) = found(passed())
    assert [hold.process for hold in finding.holds] == [2, 1]
    assert [operation.process for operation in finding.operations] == [1, 2]
    assert (finding.blame.who, finding.effect) == (Culprit.SERVICE, Verdict.VIOLATION)
    assert (finding.time_ns, finding.length_ns) == (ns(70), ns(40))
    assert "n1 had its place at 0.005 s, 5.0 ms before n2 asked" in note(finding)


TOLD = {
    "it had its place in the moment in which it asked": passed().replace("queued 5", "queued 2"),
    "it had a place in an earlier wait, too": passed()
    .replace("1 acquire 2-", "1 acquire 2-4! \n 1 acquire 6-")
    .replace("queued 5", "queued 3 \n 1 queued 7"),
}


@pytest.mark.parametrize("lines", TOLD.values(), ids=TOLD)
def test_rejects(lines: str) -> None:
    (finding,) = found(lines)
    assert [hold.process for hold in finding.holds] == [2, 1]


ACCEPTED = {
    "in the same moment": passed(waited="30", granted="30"),
    "in order": passed(waited="25", granted="30").replace("1 release 900", "1 release 26"),
    "it asked before the other one knew its place": passed().replace("queued 5", "queued 10"),
    "it was told its place again": passed().replace("queued 5", "queued 5 \n 1 queued 11"),
    "it was never told its place": passed().replace("1 queued 5", ""),
    "it gave up": passed(waited="70!"),
    "nobody knows": passed(waited="70?"),
    "never answered": passed(waited="").replace("1 release", "# "),
    "the later one was not granted it": passed(granted="30!"),
    "another key": passed().replace("2 acquire", "2 acquire:other"),
    "its place in an earlier wait": passed()
    .replace("1 acquire 2-", "1 acquire 2-4! \n 1 acquire 6-")
    .replace("queued 5", "queued 3"),
    "granted long ago, and answered late": passed(waited="700", granted="102"),
}  # fmt: skip


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(lines: str) -> None:
    assert found(lines) == []


def test_only_a_lock_that_promises_it() -> None:
    assert found(passed(), fair=False) == []


@pytest.mark.parametrize(("granted", "told"), [("100.799999", 1), ("100.8", 0)])
def test_its_lease_would_have_been_running_still(granted: str, told: int) -> None:
    assert len(found(passed(waited="700", granted=granted))) == told


@pytest.mark.parametrize(
    ("waiter", "passing", "told"), [(8, 7, 1), (7, 8, 0), (7, 7, 0), (8, None, 0), (None, 7, 0)]
)
def test_tokens_tell_whatever_the_time(waiter: object, passing: object, told: int) -> None:
    def token(value: object) -> str:
        return "" if value is None else f" token={value}"

    lines = passed(waited=f"700{token(waiter)}", granted=f"500{token(passing)}")
    assert len(found(lines)) == told


@pytest.mark.parametrize(
    ("more", "told"),
    [("", 1), ("fault pause n1 30-40", 0), ("stall n1 30-40", 0), ("fault pause n2 30-40", 1)],
)
def test_without_a_lease_whoever_stood_still_may_have_lost_its_session(
    more: str, told: int
) -> None:
    assert len(found(passed(), more, ttl_ms=None)) == told


def test_who_may_hold_it_together_needs_tokens() -> None:
    assert found(passed(), permits=2) == []
    both = passed().replace("1 acquire 2-70", "1 acquire 2-70 shared=true token=8")
    shared = both.replace("2 acquire 10-30", "2 acquire 10-30 shared=true")
    assert found(shared) == []
    assert len(found(shared.replace("10-30 shared=true", "10-30 shared=true token=7"))) == 1
    assert len(found(both)) == 1  # a writer that passed a reader


def test_each_that_pushed_in_is_told_with_who_had_waited_longest() -> None:
    lines = """
        1 acquire 0-90
        1 queued 1
        2 acquire 2-95
        2 queued 3
        3 acquire 4-10
        4 acquire 5-20"""
    pairs = [[hold.process for hold in finding.holds] for finding in found(lines)]
    assert pairs == [[3, 1], [4, 1]]


@given(st.permutations(range(6)))
def test_a_queue_is_fair_if_and_only_if_it_is_served_in_order(served: list[int]) -> None:
    """Six wait behind a seventh; they are granted it in the order of `served`."""
    lines = ["9 acquire 0-1", "9 release 50-51"]
    for n in range(6):
        at = 60 + 4 * served.index(n)
        lines += [f"{n} acquire {2 + 3 * n}-{at} \n {n} queued {3 + 3 * n}"]
        lines += [f"{n} release {at + 1}-{at + 2}"]
    passing = {n for i, n in enumerate(served) if any(m < n for m in served[i + 1 :])}
    assert {finding.holds[0].process for finding in found(*lines)} == passing
