"""Small histories of locks that more than one may hold, or one on several levels: what every judge
says of them, and what was counted while they went on."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Verdict, judge
from lockcheck.checker.live import OverlapWatch
from lockcheck.history import History
from tests.checker.dsl import codes, history

READERS = """
    1 acquire 0-1 shared=true
    2 acquire 2-3 shared=true
    1 read 4-5 seq=1 = null
    2 read 4-5 seq=2 = null
    3 acquire 6-7!
    1 release 10-11
    2 release 12-13
    3 acquire 20-21
    3 read 22-23 seq=3 = null
    3 write 24-25 a seq=4
    3 release 26-27
    1 acquire 30-31 shared=true
    1 read 32-33 seq=5 = a
    1 release 34-35"""
LATE_READER = """
    1 acquire 0-1 shared=true
    1 read 2-3 seq=1 = null
    2 acquire 102-103
    2 read 104-105 seq=2 = null
    2 write 106-107 a seq=3
    1 release 120-121!
    2 release 130-131"""
EARLY_WRITER = LATE_READER.replace("102-103", "50-51")
LATE_WRITER = """
    1 acquire 0-1
    1 read 2-3 seq=1 = null
    2 acquire 102-103 shared=true
    2 read 104-105 seq=2 = null
    1 write 120-121 a seq=3
    1 release 122-123!
    2 release 130-131"""
# Nobody wrote in between, so nothing was stale and nothing was lost.
NESTED = """
    1 acquire 0-1
    1 read 2-3 seq=1 = null
    1 acquire 4-5
    1 write 6-7 a seq=2
    1 release 8-9
    2 acquire 10-11!
    1 read 12-13 seq=3 = a
    1 write 14-15 b seq=4
    1 release 16-17
    2 acquire 20-21
    2 read 22-23 seq=5 = b
    2 write 24-25 c seq=6
    2 release 26-27"""
FREED_BY_THE_INNER_RELEASE = """
    1 acquire 0-1
    1 acquire 2-3
    1 release 4-5
    2 acquire 6-7
    2 release 20-21
    1 release 22-23"""
# It slept beyond its lease, entered what was free by then, and left that: the service was right.
ENTERED_AFRESH = """
    fault pause n1 2-115 effect=stops
    1 acquire 0-1
    2 acquire 102-103
    2 release 104-105
    1 acquire 120-121
    1 release 122-123
    3 acquire 124-125
    3 release 140-141
    1 release 142-143!"""
TOLD_AND_GONE = """
    1 acquire 0-1
    2 acquire 102-103
    1 acquire 104-105!
    1 lost 106
    2 release 108-109
    1 release 110-111!"""
FULL = """
    1 acquire 0-1
    2 acquire 2-3
    3 acquire 4-5!
    1 release 10-11
    3 acquire 12-13
    2 release 14-15
    3 release 16-17"""
ONE_TOO_MANY = """
    1 acquire 0-1
    2 acquire 60-61
    3 acquire 105-106
    2 release 110-111
    3 release 112-113
    1 release 114-115!"""
ONE_TOO_EARLY = ONE_TOO_MANY.replace("105-106", "90-91")
# Two at a time may do as they like with what no semaphore protects.
WRITES_OF_TWO = """
    1 acquire 0-1
    2 acquire 2-3
    2 write 4-5 a seq=1
    2 release 6-7
    1 write 8-9 b seq=2
    1 release 10-11"""

REENTRANT: dict[str, Any] = {"model": "reentrant"}
TWO: dict[str, Any] = {"permits": 2}
CASES: dict[str, tuple[str, dict[str, Any], list[str], set[str]]] = {
    "readers together, writers alone": (READERS, {}, [], set()),
    "a writer beside a reader that slept": (LATE_READER, {}, ["overlap"], {"holder"}),
    "a writer let in to a reader": (EARLY_WRITER, {}, ["not-linearizable", "overlap"], {"service"}),
    "a reader beside a writer that slept": (LATE_WRITER, {}, ["overlap"], {"holder"}),
    "entered and left as often": (NESTED, REENTRANT, [], set()),
    "the inner release freed it": (
        FREED_BY_THE_INNER_RELEASE,
        REENTRANT,
        ["not-linearizable", "overlap"],
        {"service"},
    ),
    "entered afresh": (ENTERED_AFRESH, REENTRANT, ["overlap", "overlap"], {"holder"}),
    "told on the inner level": (TOLD_AND_GONE, REENTRANT, ["overlap"], {"holder"}),
    "all permits": (FULL, TWO, [], set()),
    "one too many": (ONE_TOO_MANY, TWO, ["overlap"], {"holder"}),
    "one too early": (ONE_TOO_EARLY, TWO, ["not-linearizable", "overlap"], {"service"}),
    "writes under permits": (WRITES_OF_TWO, TWO, [], set()),
}


def told(name: str) -> History:
    lines, terms, *_ = CASES[name]
    return history(lines, ledger=True, ttl_ms=100, **terms)


@pytest.mark.parametrize("name", CASES)
def test_what_the_judges_say(name: str) -> None:
    *_, found, blamed = CASES[name]
    judgement = judge(told(name))
    assert sorted(codes(judgement)) == found
    assert {finding.blame.who.value for finding in judgement.findings} == blamed
    assert judgement.verdict is (Verdict.VIOLATION if found else Verdict.OK)


@pytest.mark.parametrize("name", CASES)
def test_what_is_counted_while_it_goes_on(name: str) -> None:
    """The same overlaps, once both are known to have held on; so a run can be ended early."""
    seen = told(name)
    watch = OverlapWatch(seen.terms)
    for event in seen.events:
        watch.feed(event)
    assert watch.overlaps == CASES[name][2].count("overlap")
    assert watch.holders() == {}
