"""Fencing tokens that do not grow from grant to grant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker import Case, Code, Culprit, Finding, Verdict
from lockcheck.checker.judges.token_regression import find
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import history, judged, ns


def found(*lines: str, **terms: Any) -> list[Finding]:
    return list(find(Case(history(*lines, **terms))))


ACCEPTED = {
    "growing": "1 acquire 0-1 token=1 \n 1 release 2-3 \n 2 acquire 4-5 token=2",
    "with gaps, from below zero": "1 acquire 0-1 token=-5 \n 2 acquire 4-5 token=90",
    "one key each": "1 acquire:a 0-1 token=7 \n 2 acquire:b 4-5 token=3",
    "asked at the same time, answered the other way round": """
        1 acquire 0-9 token=1
        2 acquire 1-5 token=2""",
    "asked at the moment of the other's answer": "1 acquire 0-1 token=2 \n 2 acquire 1-5 token=1",
    "no token": "1 acquire 0-1 token=9 \n 2 acquire 4-5",
    "a token that was not granted": "1 acquire 0-1 token=9 \n 2 acquire 4-5! token=3",
    "nobody knows whether it was granted": "1 acquire 0-1? token=9 \n 2 acquire 4-5 token=3",
    "told again of a grant that it never gave back": """
        1 acquire 0-1 token=4
        1 release 2-3!
        1 acquire 5-6 token=4""",
    "a write shows an old token": "1 acquire 0-1 token=9 \n 1 write 2-3 a token=3",
    "readers that share one number": """
        1 acquire 0-1 token=4 shared=true
        2 acquire 3-4 token=4 shared=true""",
}
REJECTED = {
    "going back": ("1 acquire 0-1 token=34 \n 2 acquire 4-5 token=33", [(1, 2)]),
    "the same again": ("1 acquire 0-1 token=34 \n 2 acquire 4-5 token=34", [(1, 2)]),
    "the same while both asked": ("1 acquire 0-9 token=3 \n 2 acquire 1-5 token=3", [(2, 1)]),
    "the same after it was given back": (
        "1 acquire 0-1 token=4 \n 1 release 2-3 \n 1 acquire 5-6 token=4",
        [(1, 1)],
    ),
    "below the highest, not the last": (
        "1 acquire 0-1 token=9 \n 2 acquire 2-3 token=4 \n 3 acquire 4-5 token=5",
        [(1, 2), (1, 3)],
    ),
    "its own": ("1 acquire 0-1 token=9 \n 1 release 2-3 \n 1 acquire 4-5 token=8", [(1, 1)]),
    "a reader after a writer": (
        "1 acquire 0-1 token=9 \n 2 acquire 4-5 token=9 shared=true",
        [(1, 2)],
    ),
    "a writer after readers": (
        """1 acquire 0-1 token=4 shared=true \n 2 acquire 2-3 token=4 shared=true
        3 acquire 4-5 token=4""",
        [(2, 3)],
    ),
    "a reader that goes back": (
        "1 acquire 0-1 token=9 shared=true \n 2 acquire 4-5 token=8 shared=true",
        [(1, 2)],
    ),
    "once each, where it is below one and the same as another": (
        "1 acquire 0-1 token=1 \n 2 acquire 2-3 token=2 \n 3 acquire 4-5 token=1",
        [(2, 3)],
    ),
}


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(lines: str) -> None:
    assert found(lines) == []


@pytest.mark.parametrize(("lines", "pairs"), REJECTED.values(), ids=REJECTED)
def test_rejects(lines: str, pairs: list[tuple[int, int]]) -> None:
    findings = found(lines)
    assert [tuple(h.process for h in f.holds) for f in findings] == pairs
    assert all(f.operations == tuple(h.acquire for h in f.holds) for f in findings)


def test_a_holder_that_enters_again_is_told_its_own_token() -> None:
    lines = "1 acquire 0-1 token=4 \n 1 acquire 2-3 token=4 \n 2 acquire 9-10 token=5"
    assert found(lines, model="reentrant-fenced") == []


def test_permits_may_be_told_one_number_but_never_a_lower_one() -> None:
    assert found("1 acquire 0-1 token=4 \n 2 acquire 2-3 token=4", permits=2) == []
    assert len(found("1 acquire 0-1 token=4 \n 2 acquire 2-3 token=3", permits=2)) == 1


@pytest.mark.parametrize("guard", ["none", "fence", "cas"])
def test_no_guard_makes_up_for_it(guard: str) -> None:
    judgement = judged(
        "1 acquire 0-1 token=34",
        "1 release 2-3",
        "fault restart r1 3-4",
        "2 acquire 5-6 token=33",
        guard=guard,
    )
    (finding,) = judgement.of(Code.TOKEN_REGRESSION)
    assert judgement.verdict is Verdict.VIOLATION
    assert (finding.blame.who, finding.time_ns) == (Culprit.SERVICE, ns(6))
    assert finding.blame.fault
    assert finding.blame.fault.name == "restart"


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 10), st.integers(0, 6)), max_size=9))
def test_by_definition(grants: list[tuple[int, int, int]]) -> None:
    lines = [f"{n} acquire {at}-{at + took} token={t}" for n, (at, took, t) in enumerate(grants)]
    expected = {
        n
        for n, (at, took, token) in enumerate(grants)
        for m, (other_at, other_took, other) in enumerate(grants)
        if other_at + other_took < at and token < other
    }
    told = history(*lines)
    seen: set[int | None] = set()
    for hold in told.holds:
        if hold.token in seen:
            expected.add(int(hold.process))
        seen.add(hold.token)
    assert {finding.holds[1].process for finding in find(Case(told))} == expected
    assert len(list(find(Case(told)))) == len(expected)


def test_one_who_had_it_alone_is_not_forgotten_among_many_who_shared_it() -> None:
    reader = "{n} acquire {at}-{at} token=4 shared=true"
    lines = [reader.format(n=n, at=10 * n) for n in (1, 3, 4, 5, 6)]
    findings = found(*lines, "2 acquire 20-21 token=4")
    pairs = [tuple(hold.process for hold in finding.holds) for finding in findings]
    assert pairs == [(1, 2), (2, 3), (2, 4), (2, 5), (2, 6)]


def test_what_is_said() -> None:
    (same,) = found("1 acquire 0-1 token=4 \n 2 acquire 2-3 token=4")
    (lower,) = found("1 acquire 0-1 token=4 \n 2 acquire 2-3 token=3")
    assert (note(same), note(lower)) == ("Two grants carry the same token.", "")
    assert (same.length_ns, same.blame.by_ns) == (lower.length_ns, lower.blame.by_ns) == (0, 0)
