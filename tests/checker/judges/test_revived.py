"""Renewals that should have been refused."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Case, Culprit, Finding, Verdict
from lockcheck.checker.judges.revived import find
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import history, ns

HISTORY = """
    1 acquire 0-1
    2 acquire {other}
    1 renew {renewal}
    1 renew 140-141
    2 release {released}"""


def found(*lines: str, **terms: Any) -> list[Finding]:
    return list(find(Case(history(*lines, ttl_ms=100, **terms))))


def told(other: str = "110-111", renewal: str = "120-121", released: str = "190-191") -> str:
    return HISTORY.format(other=other, renewal=renewal, released=released)


ACCEPTED = {
    "renewed before anybody else asked": "1 acquire 0-1 \n 1 renew 50-51 \n 2 acquire 200-201",
    "refused": told(renewal="120-121!").replace("1 renew 140-141", ""),
    "nobody knows": told(renewal="120-121?").replace("1 renew 140-141", ""),
    "asked before the other's grant was answered": told(renewal="111-121").replace(
        "1 renew 140-141", ""
    ),
    "the other one's grant is not certain": told(other="110-111?").replace("2 release", "# "),
    "both asked at once": told(other="0.5-111"),
    "another key": told().replace("2 acquire", "2 acquire:other"),
    "granted again in between": """
        1 acquire 0-1
        1 release 5-6
        2 acquire 10-11
        2 release 12-13
        1 acquire 20-21
        1 renew 30-31""",
    "both share it": told(other="110-111 shared=true").replace(
        "acquire 0-1", "acquire 0-1 shared=true"
    ),
    "told that it lost it, and it tried all the same": told().replace(
        "1 renew 120", "1 lost 115 \n 1 renew 120"
    ),
}


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(lines: str) -> None:
    assert found(lines) == []


def test_rejects() -> None:
    (finding,) = found(told())
    assert [hold.process for hold in finding.holds] == [1, 2]
    (renewal,) = finding.operations
    assert renewal.start_ns == ns(120)
    assert (finding.blame.who, finding.blame.by_ns) == (Culprit.SERVICE, ns(9))
    assert finding.time_ns == ns(121)
    assert "still held it" in note(finding)


def test_even_if_nobody_holds_it_any_more() -> None:
    (finding,) = found(told(released="115-116"))
    assert "had let go" in note(finding)


def test_the_first_that_should_have_been_refused() -> None:
    (finding,) = found(told(renewal="50-51"))
    assert finding.operations[0].start_ns == ns(140)


def test_a_reader_and_a_writer() -> None:
    assert len(found(told(other="110-111 shared=true"))) == 1
    assert len(found(told().replace("acquire 0-1", "acquire 0-1 shared=true"))) == 1


def test_a_semaphore_is_not_judged() -> None:
    assert found(told(), permits=2) == []


@pytest.mark.parametrize(("guard", "effect"), [("none", "violation"), ("fence", "ok")])
def test_behind_a_guard_it_is_shown(guard: str, effect: str) -> None:
    (finding,) = found(told(), guard=guard)
    assert finding.effect is Verdict(effect)


def test_whoever_entered_again_in_between_holds_it_again() -> None:
    lines = told().replace("1 renew 120-121", "1 acquire 115-116 \n 1 renew 120-121")
    assert found(lines, model="reentrant") == []
    before = told().replace("2 acquire", "1 acquire 50-51 \n 2 acquire")
    assert len(found(before, model="reentrant")) == 1


def test_a_renewal_sent_at_the_moment_of_the_others_grant_is_not_the_one() -> None:
    (finding,) = found(told(renewal="111-121"))
    assert finding.operations[0].start_ns == ns(140)


@pytest.mark.parametrize(("released", "held"), [("120.5-122", False), ("121.5-122", True)])
def test_whether_it_was_still_held_when_the_renewal_was_answered(released: str, held: bool) -> None:
    (finding,) = found(told(released=released))
    assert ("still held it" in note(finding)) is held
