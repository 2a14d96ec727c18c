"""How soon a lock is granted again after the end of its holder."""

from __future__ import annotations

import pytest

from lockcheck.checker import judge
from lockcheck.checker.case import Case
from lockcheck.checker.whole_run.freed import freed
from lockcheck.history.event import NS_PER_MS
from lockcheck.results.story.seen import freed_again
from tests.checker import dsl

KILLED = "fault kill n1 10-50 effect=ends since=11 proven=12"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["1 acquire 0-1", KILLED, "2 acquire 900-1011"], [("n1", 1000)]),
        (["1 acquire 0-1", "1 write 9-", KILLED, "2 acquire 900-1011"], [("n1", 1000)]),
        (["1 acquire 0-1", KILLED], [("n1", None)]),
        (["1 acquire 0-1", KILLED, "2 acquire 20-30!", "3 acquire 30-40"], [("n1", 29)]),
        # Not held, not by it, or given back before:
        (["2 acquire 0-1", KILLED, "3 acquire 900-1011"], []),
        (["1 acquire 0-1", "1 release 5-6", KILLED, "2 acquire 20-30"], []),
        (["1 acquire 0-1", "1 release 9-", KILLED, "2 acquire 20-30"], []),
        (["1 acquire 0-", KILLED, "2 acquire 20-30"], []),
        (["1 acquire 0-1", "1 lost 5", KILLED, "2 acquire 20-30"], []),
        # Nobody was ended: stopped, or never proven.
        (["1 acquire 0-1", "fault pause n1 10-50 effect=stops", "2 acquire 20-30"], []),
        (["1 acquire 0-1", "fault kill n1 10-50! effect=ends", "2 acquire 20-30"], []),
        # Each lock that it held.
        (
            ["1 acquire:a 0-1", "1 acquire:b 2-3", KILLED, "2 acquire:b 20-31", "3 acquire:a 9-51"],
            [("n1", 40), ("n1", 20)],
        ),
    ],
)
def test_freed(lines: list[str], expected: list[tuple[str, int | None]]) -> None:
    found = freed(Case(dsl.history(*lines)))
    in_ms = [(f.node, None if f.after_ns is None else f.after_ns // NS_PER_MS) for f in found]
    assert in_ms == expected


def test_who_shares_it_does_not_show_that_it_is_free() -> None:
    shared = ["1 acquire 0-1 shared=true", KILLED, "2 acquire 20-30 shared=true"]
    [found] = freed(Case(dsl.history(*shared, "3 acquire 40-111")))
    assert found.after_ns == 100 * NS_PER_MS


def test_it_is_told_in_a_line() -> None:
    history = dsl.history("1 acquire 0-1", KILLED, "2 acquire 900-1011", ttl_ms=1000, session=True)
    told = freed_again(history.terms, judge(history))
    assert told == "1.000 s after its holder was ended (1 time); session timeout 1.000 s"


def test_that_it_never_was_is_told_too() -> None:
    history = dsl.history("1 acquire 0-1", KILLED, "2 acquire 900-1011!")
    assert (
        freed_again(history.terms, judge(history))
        == "not within this history after its holder was ended (1 time)"
    )


def test_a_permit_is_free_again_when_as_many_others_as_there_are_permits_hold_one() -> None:
    lines = ["1 acquire 0-1", "2 acquire 2-3", KILLED, "2 release 20-21", "2 acquire 30-31"]
    later = ["3 acquire 900-1011", "2 release 1020-1021", "3 release 1022-1023"]
    [found] = freed(Case(dsl.history(*lines, *later, permits=2)))
    assert found.after_ns == 1000 * NS_PER_MS


def test_where_there_is_a_permit_for_everybody_nobody_waits_for_one() -> None:
    lines = ["1 acquire 0-1", KILLED, "2 acquire 20-30"]
    assert freed(Case(dsl.history(*lines, permits=2, clients=2))) == ()


CUT_OFF = "fault partition n1 10-900 effect=cuts since=11 proven=300"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # Whether it looks at its lease, or goes on and gives it back in the end:
        (["1 acquire 0-1", CUT_OFF, "1 lost 600", "2 acquire 700-711"], [700]),
        (["1 acquire 0-1", CUT_OFF, "2 acquire 700-711", "1 release 901-902!"], [700]),
        (["1 acquire 0-1", CUT_OFF], [None]),
        # Given back before somebody else was let in, or not held when the cut worked:
        (["1 acquire 0-1", CUT_OFF, "1 release 500-501", "2 acquire 700-711"], []),
        (["1 acquire 0-1", CUT_OFF, "1 release 500-501"], []),
        (["1 acquire 0-1", "1 release 5-6", CUT_OFF, "2 acquire 700-711"], []),
        (["1 acquire 0-1", "1 lost 5", CUT_OFF, "2 acquire 700-711"], []),
    ],
)
def test_who_was_cut_off(lines: list[str], expected: list[int | None]) -> None:
    history = dsl.history(*lines)
    found = freed(Case(history))
    assert [f.after_ns and f.after_ns // NS_PER_MS for f in found] == expected
    assert ("cut off" in freed_again(history.terms, judge(history))) == bool(expected)


def test_a_hold_is_freed_by_the_end_of_its_own_life_only() -> None:
    """What strikes the same client later strikes another one, which has nothing of that."""
    lives = ["1 acquire 0-1", KILLED, "2 acquire 90-111", "2 release 120-121"]
    again = "fault kill n1 210-250 effect=ends since=211 proven=212"
    cut = "fault partition n1 310-900 effect=cuts since=311 proven=312"
    history = dsl.history(*lives, "7@n1 read:x 200-201", again, cut, "3 acquire 400-411")
    assert [f.after_ns for f in freed(Case(history))] == [100 * NS_PER_MS]
