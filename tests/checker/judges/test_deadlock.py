"""Clients that wait for each other in a circle."""

from __future__ import annotations

import time
from typing import Any

import pytest

from lockcheck.checker import Case, Culprit, Finding, Verdict
from lockcheck.checker.judges.deadlock import find
from lockcheck.results.story.wording.codes import in_full
from tests.checker.dsl import history, ns


def found(*lines: str, **terms: Any) -> list[Finding]:
    return list(find(Case(history(*lines, **terms))))


TWO = """
    1 acquire:a 0-1
    2 acquire:b 0-1
    1 acquire:b 10-{one}
    2 acquire:a 20-{two}
    9 read 5000-5001"""


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        ("2000!", "2000!", 1),
        ("2000?", "2000?", 1),
        ("2000!", "2001", 1),  # one gave up, and so the other one got it
        ("", "", 1),  # until the end
        ("", "2000!", 1),
        ("1020!", "2000!", 1),
        ("1019.999999!", "2000!", 0),
        ("11!", "2000!", 0),
    ],
)
def test_two_wait_for_each_other(one: str, two: str, told: int) -> None:
    assert len(found(TWO.format(one=one, two=two))) == told


WAITING = TWO.format(one="2000!", two="2000!")
ACCEPTED = {
    "no circle": "1 acquire:a 0-1 \n 2 acquire:b 0-1 \n 1 acquire:b 10-2000! \n 2 read 9-10",
    "released before it asked": WAITING.replace("2 acquire:a", "2 release:b 15-16 \n 2 acquire:a"),
    "told that it lost it": WAITING + "\n 1 lost:a 500",
    "one lock": "1 acquire 0-1 \n 1 acquire 5-2000! \n 2 acquire 5-2000!",
    "one after the other": """
        1 acquire:a 0-1
        2 acquire:b 0-1
        1 acquire:b 10-1500!
        2 acquire:a 1500.5-3000!""",
    "attempts that are repeated": "1 acquire:a 0-1 \n 2 acquire:b 0-1 \n" + "\n".join(
        f"1 acquire:b {at}-{at + 40}! \n 2 acquire:a {at}-{at + 40}!" for at in range(10, 3000, 50)
    ),
    "three, the chain is open": """
        1 acquire:a 0-1
        2 acquire:b 0-1
        3 acquire:c 0-1
        1 acquire:b 10-2000!
        2 acquire:c 10-2000!
        3 read 900-901""",
    "readers do not wait for each other": """
        1 acquire:a 0-1 shared=true
        2 acquire:b 0-1 shared=true
        1 acquire:b 10-2000! shared=true
        2 acquire:a 20-2000! shared=true""",
    "one that was never answered may have died": TWO.format(one="", two="2000!")
    + "\n fault kill n1 50-60",
    "one of them stood still": WAITING + "\n fault pause n1 100-1200",
    "the machine stalled": WAITING + "\n stall n2 100-1200",
    "it had given up what it was granted first": """
        1 acquire:a 0-1
        1 acquire:a 3-4
        1 release:a 5-6
        2 acquire:b 0-1
        1 acquire:b 10-2000!
        2 acquire:a 20-2000!""",
}  # fmt: skip


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(lines: str) -> None:
    assert found(lines) == []


TOLD = {
    "released in the end": WAITING + "\n 1 release:a 2100-2101",
    "asked in the moment of the grant": WAITING.replace("1 acquire:a 0-1", "1 acquire:a 0-10"),
    "for a second": WAITING.replace("2000!", "1010!").replace("20-", "10-"),
    "a fault struck somebody else": TWO.format(one="", two="2000!") + "\n fault kill n7 50-60",
}


@pytest.mark.parametrize("lines", TOLD.values(), ids=TOLD)
def test_rejects(lines: str) -> None:
    assert len(found(lines)) == 1


def test_leases_that_run_out_end_it() -> None:
    assert len(found(WAITING, ttl_ms=1980)) == 1
    assert found(WAITING, ttl_ms=1981) == []
    assert found(WAITING.replace("acquire:a 0-1", "acquire:a 0-1 ttl_ms=1981")) == []


def test_in_a_production_log_who_is_not_answered_may_have_died() -> None:
    """And its lock was free after its lease, unless that was renewed."""
    waiting, renewed = TWO.format(one="", two=""), "\n 1 renew:a 3-4 \n 2 renew:b 3-4"
    log: dict[str, Any] = {"partial": True, "ttl_ms": 300}
    assert len(found(waiting, **log | {"partial": False})) == 1
    assert found(waiting, **log) == []
    assert len(found(waiting, renewed, **log)) == 1
    assert len(found(waiting, **log, session=True)) == 1


def test_permits_are_not_judged() -> None:
    assert found(WAITING, permits=2) == []


def test_what_is_said() -> None:
    (finding,) = found(WAITING)
    assert [hold.key for hold in finding.holds] == ["a", "b"]
    assert [(o.process, o.key) for o in finding.operations] == [(1, "b"), (2, "a")]
    assert (finding.key, finding.time_ns, finding.length_ns) == ("a", ns(20), ns(1980))
    assert finding.blame.by_ns == 0
    assert (finding.blame.who, finding.effect) == (Culprit.CLIENT, Verdict.VIOLATION)
    assert in_full(finding)[0].startswith("n1 held 'a' since 0.001 s and asked for 'b' at 0.010 s")


def test_four_in_a_circle_beside_others_that_wait() -> None:
    lines = [f"{n} acquire:k{n} 0-1" for n in range(7)]
    lines += [f"{n} acquire:k{(n + 1) % 4} {10 + n}-3000!" for n in range(4)]
    lines += [f"{n} acquire:k{n - 4} {20 + n}-3000!" for n in range(4, 7)]
    (finding,) = found(*lines)
    assert {hold.process for hold in finding.holds} == {0, 1, 2, 3}
    assert len(in_full(finding)) == 4


def test_a_writer_waits_for_each_of_the_readers() -> None:
    lines = """
        1 acquire:a 0-1 shared=true
        2 acquire:a 0-1 shared=true
        3 acquire:b 0-1
        3 acquire:a 10-2000!
        2 acquire:b 20-2000! shared=true"""
    (finding,) = found(lines)
    assert {hold.process for hold in finding.holds} == {2, 3}


def test_a_reader_that_leads_nowhere_is_left_for_the_next() -> None:
    lines = """
        1 acquire:x 0-1
        2 acquire:y 0-1 shared=true
        3 acquire:y 0-1 shared=true
        4 acquire:z 0-1
        1 acquire:y 10-2000!
        2 acquire:z 11-2000!
        3 acquire:other 12-2000!
        4 acquire:x 20-2000!"""
    (finding,) = found(lines)
    assert [hold.process for hold in finding.holds] == [1, 2, 4]


def test_many_that_wait_without_a_circle_cost_little() -> None:
    lines = [f"{n} acquire:k{n} 0-1" for n in range(400)]
    lines += [f"{n} acquire:k{n + 1} {10 + n}-9000!" for n in range(399)]
    told = history(*lines)
    began = time.process_time()
    assert list(find(Case(told))) == []
    assert time.process_time() - began < 5
