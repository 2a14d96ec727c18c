"""How a report tells of locks that are shared, entered again, or have permits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lockcheck.checker import judge
from lockcheck.history import History, Terms
from lockcheck.results.report.timeline import timeline
from lockcheck.results.story.narrative import Narrative
from lockcheck.results.story.seen import counted, updates_lost
from tests.checker.dsl import history
from tests.results import story

COUNTS = judge(history()).counts


@pytest.mark.parametrize(
    ("terms", "counts", "row"),
    [
        (Terms(), {"shared_together": 3}, ("shared it at once", "3")),
        (Terms(permits=3), {"held_together": 2}, ("of 3 permits held at once", "2")),
        (Terms(model="reentrant"), {"entered_deepest": 3}, ("levels entered", "3")),
        (Terms(stores=True), {}, ("writes accepted", "0")),
    ],
)
def test_what_was_seen_of_it(terms: Terms, counts: dict[str, int], row: tuple[str, str]) -> None:
    of = History.of([], terms=terms)
    judgement = replace(judge(of), counts=replace(COUNTS, **counts))
    assert row in list(counted(of, judgement))
    plain = replace(judgement, counts=COUNTS)
    assert row not in list(counted(History.of([]), plain))


@pytest.mark.parametrize(
    ("acknowledged", "lost", "words"),
    [
        (120, 0, "0 of 120 acknowledged writes lost"),
        (120, 14, "14 of 120 acknowledged writes lost (12 %)"),
        (19, 19, "19 of 19 acknowledged writes lost"),
        (20, 20, "20 of 20 acknowledged writes lost (100 %)"),
        (5000, 1, "1 of 5,000 acknowledged writes lost (0.02 %)"),
    ],
)
def test_how_much_was_lost(acknowledged: int, lost: int, words: str) -> None:
    counts = replace(COUNTS, updates_acknowledged=acknowledged, updates_lost=lost)
    assert updates_lost(counts) == words


PAUSED_READER = """
    1 acquire 0-1 shared=true
    2 acquire 110-111
    2 release 120-121
    1 release 150-151!"""
PAUSED_WRITER = """
    1 acquire 0-1
    2 acquire 110-111 shared=true
    3 acquire 112-113 shared=true
    1 release 150-151!
    2 release 160-161
    3 release 160-161"""


def test_a_writer_beside_a_reader() -> None:
    told = history(PAUSED_READER, ttl_ms=100)
    judgement = judge(told)
    [finding] = judgement.findings
    assert story.title(finding) == (
        "n1 held k for 50 ms beyond its lease, while n2 was let in to have it alone"
    )
    assert story.detail(judgement).startswith(
        "At 0.111 s: n1 held k for 50 ms beyond its lease, while n2 was let in to have it alone."
    )


def test_readers_beside_a_writer() -> None:
    told = history(PAUSED_WRITER, ttl_ms=100)
    judgement = judge(told)
    [incident] = story.incidents(judgement.findings)
    assert story.incident_title(incident) == (
        "n1 held k for 50 ms beyond its lease, while others were let in twice to share it"
        " (n2 first)"
    )


def test_one_too_many_for_the_permits() -> None:
    told = history(
        "1 acquire 0-1\n2 acquire 95-96\n3 acquire 110-111\n1 release 150-151!",
        "2 release 152-153\n3 release 152-153",
        permits=2,
        ttl_ms=100,
    )
    judgement = judge(told)
    assert "n1, n2 and n3 all held one of the 2 permits of k" in story.detail(judgement)


def test_a_run_that_is_right_says_what_it_saw() -> None:
    told = history(
        "1 acquire 0-1\n2 acquire 2-3\n1 release 10-11\n2 release 12-13", permits=2, ttl_ms=100
    )
    said = story.detail(judge(told))
    assert "no more than 2 clients held a lock at the same time." in said
    assert ("of 2 permits held at once", "2") in list(counted(told, judge(told)))


def test_the_timeline_tells_readers_from_writers() -> None:
    told = history(PAUSED_READER, ttl_ms=100)
    drawn = timeline(Narrative(judge(told)), [], [])
    assert json.loads(drawn.json)["holds"]["shared"] == [1, 0]
    assert {"shared", "hold"} <= drawn.kinds
