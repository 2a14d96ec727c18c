"""Whose fault it was, in words, where it was neither the lock server's nor the holder's alone."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import judge
from lockcheck.results.story.grouping import incidents, worst_first
from lockcheck.results.story.wording.blame import blame_of
from lockcheck.results.story.wording.cures import prevention_of
from tests.checker.dsl import history
from tests.checker.judges.test_stale_read import LOST


def told(*lines: str, **terms: Any) -> tuple[str, str]:
    """Blame and prevention of the first incident."""
    judgement = judge(history(*lines, **{"ttl_ms": 100, **terms}))
    first = worst_first(incidents(judgement.findings))[0]
    whose = blame_of(judgement.case.history, first)
    return whose, prevention_of(judgement.case.history, first)


EARLY = "1 acquire 0-1 \n 2 acquire 50-51 \n 1 release 60-61 \n 2 release 70-71"
WAITED = """
    9 acquire 0-1
    1 acquire 2-500
    9 release 50-51
    2 acquire 509-510
    1 release 520-521!
    2 release 530-531"""
DRIFT = "1 acquire 0-1 \n 2 acquire 98-99.9 \n 1 release 99.95-99.96! \n 2 release 130-131"
CONNECTION = """
    1 acquire 0-1 valid_ms=99
    9 renew 60-61 of=1 valid_ms=99
    2 acquire 120-121 valid_ms=99
    1 release 140-141! refused=not-owner
    2 release 150-151
    fault kill p1 80-110 since=81 effect=ends"""
CASES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "what is tested, and not the server below it": (
        EARLY,
        {"server": "Redis", "accused": "sherlock 0.4.0 on Redis"},
        "Sherlock 0.4.0 on Redis: it let n2 in 49 ms before the lease",
        "Test what it stands on alone, too",
    ),
    "the server, where it is tested": (
        EARLY,
        {"server": "Redis"},
        "The lock server (Redis): it let n2 in",
        "That is a defect of the lock",
    ),
    "not known: it waited": (WAITED, {}, "Not known: n1 waited for the lock", "Record when"),
    "two clocks": (
        DRIFT,
        {},
        "None of them for certain: n2 was let in 0.10 ms before",
        "Nothing",
    ),
    "a storage that serves old values": (
        LOST,
        {},
        "The storage: what was overwritten had been accepted, and it served an older value to",
        "Reads under the lock have to go to where writes are accepted",
    ),
    "the kind of lock": (
        CONNECTION,
        {
            "session": True,
            "backend": "postgres-advisory",
            "ends_with": "connection",
            "lock_nodes": ("p1",),
        },
        "This kind of lock: it lasts as long as a connection, and that of n1 had ended",
        "A lock that lasts as long as a connection is free as soon as that ends",
    ),
}


@pytest.mark.parametrize(("lines", "terms", "blame", "cure"), CASES.values(), ids=CASES)
def test_it_is_told(lines: str, terms: dict[str, Any], blame: str, cure: str) -> None:
    whose, what_helps = told(lines, **terms)
    assert whose.startswith(blame)
    assert what_helps.startswith(cure) or cure in what_helps
