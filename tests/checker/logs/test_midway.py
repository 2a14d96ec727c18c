"""Production logs: what happened before them, and what their clients cannot know."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Verdict
from tests.checker.dsl import codes, judged

# A lock that two clients share, so that there is enough to tell.
USED = """
    8 acquire:j 0-1
    8 release:j 2-3
    9 acquire:j 4-5
    9 release:j 6-7
"""

RIGHT: dict[str, tuple[str, dict[str, Any]]] = {
    "a release that was done, and confirmed when it was repeated": ("""
        1 acquire 0-1
        1 release 2-3?
        2 acquire 4-5
        1 release 6-7
        2 release 8-9""", {}),
    "a release that was repeated more than once": ("""
        1 acquire 0-1
        1 release 2-3?
        1 release 4-5?
        2 acquire 6-7
        1 release 8-9
        2 release 10-11""", {}),
    "a release to be sure, of what it was never granted": ("""
        1 acquire 0-1 token=1
        1 release 2-3
        2 acquire 4-5 token=2
        1 acquire 6-7?
        1 release 8-9
        2 release 10-11
        1 acquire 12-13 token=3""", {}),
    "granted again under its name, within its lease": ("""
        1 acquire 0-1 token=1
        1 acquire 20-21 token=2
        1 release 22-23
        2 acquire 24-25 token=3
        2 release 26-27""", {"ttl_ms": 100}),
    "and it had renewed it": ("""
        1 acquire 0-1
        1 renew 5-6
        1 acquire 20-21
        1 release 22-23
        2 acquire 24-25
        2 release 26-27""", {"ttl_ms": 100}),
    "crashed, asked again without an answer, and released it to be sure": ("""
        1 acquire 0-1
        1 acquire 436-446?
        1 acquire 703-713?
        1 release 714-715
        1 acquire 1017-1018
        2 acquire 1294-1295""", {"ttl_ms": 200}),
    "not answered, and granted it later": ("""
        1 acquire 0-20? token=1
        1 acquire 440-443 token=2
        2 acquire 1995-1999 token=4""", {"ttl_ms": 1000}),
    "crashed, and came back elsewhere": ("""
        1 acquire 0-1
        1 write 2-90? v
        1 acquire:i 90-91
        1 release:i 92-93
        2 acquire 110-111
        1 acquire:i 112-113
        2 release 114-115""", {"ttl_ms": 100}),
    "written by an earlier holder": ("""
        2 acquire 0-1!
        1 write 2-3 v
        1 release 4-5
        2 acquire 6-7
        2 write 8-9 w
        2 release 10-11""", {}),
    "released by a third client, without an answer the first time": ("""
        1 acquire 0-1
        3 release 2-3?
        2 acquire 4-5
        3 release 6-7
        1 acquire 8-9""", {"model": "mutex"}),
    "entered again, and left without an answer, and then the level below": ("""
        1 acquire 0-1
        1 acquire 2-3
        1 release 4-5?
        1 release 6-7
        2 acquire 8-9
        2 release 10-11""", {"model": "reentrant"}),
    "entered again, not answered, and left to be sure": ("""
        1 acquire 0-1
        1 acquire 2-3?
        1 release 4-5
        1 release 6-7
        2 acquire 8-9
        2 release 10-11""", {"model": "reentrant"}),
    "crashed inside, and entered anew when its lease was over": ("""
        1 acquire 0-1
        1 write 2-90? v
        2 acquire 110-111
        2 release 112-113
        1 acquire 120-121
        1 release 122-123""", {"model": "reentrant", "ttl_ms": 100}),
    "crashed inside, and was not answered when it asked again": ("""
        1 acquire 0-1
        2 acquire 110-119
        1 acquire 112-113?
        1 release 114-115
        2 release 120-121""", {"model": "reentrant", "ttl_ms": 100}),
    "asked for before the log began, and granted in it": ("""
        2 acquire 0-1
        2 write 1-2 u
        2 release 2-3
        1 write 4-5 v
        1 release 6-7""", {}),
    "a value of before, and one that it is replaced by": ("1 cas 0-1 [5,6] \n 2 read 2-3 = 6", {}),
    "a value of before that is written again": ("""
        1 read 0-1 = a
        2 write 2-3 b
        2 write 4-5 a
        1 read 6-7 = a""", {}),
    "a counter": ("1 add 0-1 2 \n 2 read 2-3 = 40 \n 1 add 3-4 1 \n 2 read 5-6 = 41", {}),
    "a counter that was read during an add": ("""
        1 add 0-9 2
        2 read 1-2 = 40
        3 read 3-4 = 42
        2 read 10-11 = 42""", {}),
    "a set": ("1 read 0-1 = [1,2] \n 2 add 2-3 3 \n 1 read 4-5 = [3,2,1]", {}),
    "a mutex that was held": ("""
        1 release 0-1
        2 acquire 2-3
        1 release 4-5""", {"model": "mutex"}),
    "a mutex that was held, and granted to another before whom the log does not say": ("""
        1 renew 0-1
        1 release 2-3
        2 release 4-5
        3 acquire 6-7
        3 release 8-9""", {"model": "mutex"}),
    "a level on which it was held": ("""
        1 acquire 0-1
        1 release 2-3
        1 release 4-5
        2 acquire 6-7
        2 release 8-9""", {"model": "reentrant"}),
    "a level on which it was held, left in the moment in which it is granted to another": ("""
        1 release 0-1
        1 release 2-3
        2 acquire 1-2
        2 release 6-7""", {"model": "reentrant"}),
    "a level on which it was held, known by its token": ("""
        1 acquire 0-1 token=7
        1 release 2-3
        1 acquire 4-5 token=7
        1 release 6-7""", {"model": "reentrant-fenced"}),
    "two permits that were held": ("""
        1 release 0-1
        3 acquire 2-3
        2 release 4-5
        4 acquire 6-7
        3 release 8-9
        4 release 10-11""", {"model": "semaphore", "permits": 2}),
}  # fmt: skip

WRONG: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "granted to another before the first release was sent": ("""
        1 acquire 0-1
        2 acquire 2-3
        1 release 4-5?
        1 release 6-7
        2 release 8-9""", {"model": "owner-mutex"}, {"overlap", "not-linearizable"}),
    "within the lease of one that never asked again": ("""
        1 acquire 0-1
        2 acquire 50-51
        2 release 52-53
        1 acquire 60-61""", {"ttl_ms": 100}, {"not-linearizable"}),
    "while it was still at it": ("""
        1 acquire 0-1
        1 write 60-61 v
        2 acquire 50-55
        2 release 70-71""", {"ttl_ms": 100}, {"overlap", "not-linearizable"}),
    "written by one that held nothing any more": ("""
        1 read:j 0-0.5
        2 acquire 0-1
        2 write 1-2 u
        2 release 2-3
        1 write 4-5 v""", {}, {"unlocked-section"}),
    "two values of before": ("""
        1 read 0-1 = a
        2 read 1.5-2 = b
        1 read 8-9 = b""", {}, {"not-linearizable"}),
    "a value of before, after the first one that was written": ("""
        1 write 0-1 a
        2 read 1.5-2 = b
        1 read 8-9 = b""", {}, {"not-linearizable"}),
    "a counter that counts wrong": ("""
        1 read 0-1 = 40
        1 add 2-3 1
        2 read 4-5 = 42""", {}, {"not-linearizable"}),
    "a set that loses what was in it": ("""
        1 read 0-1 = [1,2]
        1 add 2-3 3
        2 read 4-5 = [1,3]""", {}, {"not-linearizable"}),
    "a mutex, granted to another before the release that was asked for twice": ("""
        1 acquire 0-1
        2 acquire 2-3
        1 release 4-5?
        1 release 6-7
        2 release 8-9""", {"model": "mutex"}, {"overlap", "not-linearizable"}),
    "a mutex, granted more often than two releases that may have been one explain": ("""
        1 acquire 0-1
        1 release 2-3?
        1 release 4-5
        2 acquire 6-7
        3 acquire 8-9
        4 acquire 10-11""", {"model": "mutex"}, {"not-linearizable"}),
    "a lock that is entered again, granted to another before it was left as often": ("""
        1 acquire 0-1
        1 acquire 2-3
        1 release 4-5
        2 acquire 6-7
        2 release 8-9
        1 release 10-11""", {"model": "reentrant"}, {"overlap", "not-linearizable"}),
    "left on a level of before, after it was granted to another": ("""
        1 acquire 0-1
        1 release 2-3
        2 acquire 4-5
        2 release 6-7
        1 release 8-9""", {"model": "reentrant"}, {"not-linearizable"}),
    "more permits than there are": ("""
        1 release 0-1
        1 release 2-3
        1 release 4-5
        2 acquire 6-7""", {"model": "semaphore", "permits": 2}, {"not-linearizable"}),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "terms"), RIGHT.values(), ids=RIGHT)
def test_a_lock_that_is_right_is_not_accused(lines: str, terms: dict[str, Any]) -> None:
    judgement = judged(lines, USED, partial=True, **terms)
    assert judgement.verdict is Verdict.OK, (judgement.findings, judgement.doubts)


OF_ANY_LOCK = {name: case for name, case in RIGHT.items() if "model" not in case[1]}


@pytest.mark.parametrize("model", ["mutex", "semaphore"])
@pytest.mark.parametrize(("lines", "terms"), OF_ANY_LOCK.values(), ids=OF_ANY_LOCK)
def test_nor_if_any_client_may_release_it(lines: str, terms: dict[str, Any], model: str) -> None:
    """A model that demands less accepts it, too."""
    judgement = judged(lines, USED, partial=True, model=model, **terms)
    assert judgement.verdict is Verdict.OK, (judgement.findings, judgement.doubts)


@pytest.mark.parametrize(("lines", "terms", "found"), WRONG.values(), ids=WRONG)
def test_what_no_beginning_explains(lines: str, terms: dict[str, Any], found: set[str]) -> None:
    judgement = judged(lines, USED, partial=True, **terms)
    assert set(codes(judgement)) == found, judgement.doubts
    assert judgement.verdict is Verdict.VIOLATION


@pytest.mark.parametrize(("lines", "terms"), list(RIGHT.values())[14:])
def test_what_began_at_the_beginning_has_to_be_explained(lines: str, terms: dict[str, Any]) -> None:
    assert judged(lines, USED, **terms).verdict is Verdict.VIOLATION
