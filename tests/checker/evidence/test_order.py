"""Which hold came first, which hold an operation belongs to, and what was under way when."""

from __future__ import annotations

import pytest

from lockcheck.checker.evidence.order import (
    HoldIndex,
    Spans,
    certainly_earlier,
    concurrent,
    granted_before,
)
from lockcheck.checker.evidence.rivals import Reentries, Rivals, exclude
from lockcheck.history import Hold, Terms
from tests.checker.dsl import history, ns


def two(first: str, second: str) -> tuple[Hold, Hold]:
    """The hold of process 1 and that of process 2, whichever began first."""
    holds = {h.process: h for h in history(f"1 acquire {first} \n 2 acquire {second}").holds}
    return holds[1], holds[2]


@pytest.mark.parametrize(
    ("first", "second", "before", "at_once"),
    [
        ("0-1", "2-3", True, False),
        ("0-1", "1-3", False, True),  # equal times are concurrent
        ("0-1", "1.000001-3", True, False),
        ("0-5", "2-3", False, True),
        ("2-3", "0-1", False, False),
    ],
)
def test_by_time(first: str, second: str, before: bool, at_once: bool) -> None:
    one, other = two(first, second)
    assert granted_before(one, other) is before
    assert concurrent(one, other) is concurrent(other, one) is at_once
    assert certainly_earlier(one, other) is before


@pytest.mark.parametrize(
    ("first", "second", "earlier"),
    [
        ("0-5 token=1", "2-3 token=2", True),
        ("0-5 token=2", "2-3 token=2", False),
        ("0-5 token=3", "2-3 token=2", False),
        ("0-5 token=1", "2-3", False),
        ("0-5", "2-3 token=2", False),
        ("0-1 token=9", "2-3 token=2", True),  # time wins
        ("2-3 token=1", "0-1 token=2", False),
    ],
)
def test_by_tokens_where_time_does_not_tell(first: str, second: str, earlier: bool) -> None:
    assert certainly_earlier(*two(first, second)) is earlier


def test_the_hold_of_an_operation() -> None:
    told = history(
        """
        1 read 0-0.5
        1 acquire 1-2
        1 read 2-3
        1 release 4-5
        1 read 6-7
        1 acquire 8-9
        1 read 10-11
        2 read 12-13
        1 read:other 14-15"""
    )
    index, (first, second) = HoldIndex(told.holds), told.holds
    reads = [index.of(operation) for operation in told.operations if operation.f == "read"]
    assert reads == [None, first, first, second, None, None]


def test_what_was_under_way() -> None:
    spans = Spans([(0, 100, "long"), (10, 20, "short"), (15, None, "for ever"), (30, 40, "late")])
    assert list(spans.touching(12, 35)) == ["late", "for ever", "short", "long"]
    assert list(spans.touching(20, 30)) == ["for ever", "long"]  # closed: it only touches
    assert list(spans.touching(12, 15)) == ["short", "long"]
    assert list(spans.touching(100, 101)) == ["for ever"]
    assert list(Spans([(0, 10, "over")]).touching(10, 20)) == []


# --- who excludes whom -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "permits", "excluded"),
    [
        ("", "", 1, True),
        ("shared=true", "", 1, True),
        ("", "shared=true", 1, True),
        ("shared=true", "shared=true", 1, False),
        ("", "", 2, False),
        ("shared=true", "", 2, False),
        ("", "", 0, True),
    ],
)
def test_who_excludes_whom(first: str, second: str, permits: int, excluded: bool) -> None:
    one, other = two(f"0-1 {first}", f"2-3 {second}")
    assert exclude(Terms(permits=permits), one, other) is excluded


def test_rivals_are_granted_later_and_before_the_moment() -> None:
    told = history("1 acquire 0-1 \n 2 acquire 2-3 \n 3 acquire 4-5 \n 4 acquire 0.5-6")
    first, second, third, _ = told.holds
    rivals = Rivals(told, list(told.holds))
    assert list(rivals.after(first, ns(5))) == [second]  # at that moment it is too late
    assert list(rivals.after(first, ns(5) + 1)) == [second, third]
    assert list(rivals.after(first, ns(100))) == [second, third]  # the fourth asked before
    assert list(rivals.after(third, ns(100))) == []


@pytest.mark.parametrize(
    ("after", "before", "again"),
    [(0, 4, True), (1, 4, True), (3, 4, False), (2.9, 3, False), (2.9, 3.1, True), (0, 1, False)],
)
def test_a_reentrant_lock_is_entered_again(after: float, before: float, again: bool) -> None:
    told = history("1 acquire 0-1 \n 1 acquire 2-3 \n 1 acquire 5-6!", model="reentrant")
    (hold,) = told.holds
    assert Reentries(told).between(hold, ns(after), ns(before)) is again


def test_other_locks_are_not_entered_again() -> None:
    told = history("1 acquire 0-1 \n 1 acquire 2-3")
    assert not Reentries(told).between(told.holds[0], 0, ns(9))
