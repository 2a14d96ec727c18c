"""The longest time in which a lock was asked for and not granted."""

from __future__ import annotations

from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker import judge
from lockcheck.checker.whole_run.ungranted import longest_ungranted
from lockcheck.history import F, History
from lockcheck.history.event import NS_PER_MS
from lockcheck.results.story.seen import without_grant
from tests.checker import dsl


@pytest.mark.parametrize(
    ("lines", "key", "since_ms", "length_ms"),
    [
        (["1 acquire 5-6"], "k", 5, 1),
        (["1 acquire 0-1", "2 acquire 5-6!", "2 acquire 50-60!", "2 acquire 90-95"], "k", 5, 90),
        (["1 acquire 0-1", "2 acquire 0-60", "1 release 58-59"], "k", 1, 59),
        # Never granted again: until they were last heard of.
        (["1 acquire 0-1", "2 acquire 5-6!", "3 acquire 40-45!"], "k", 5, 40),
        (["1 acquire 0-9!", "2 acquire 5-20!"], "k", 0, 20),
        # Who is never answered asks once.
        (["1 acquire 0-1", "2 acquire 5-", "3 acquire 500-510"], "k", 5, 505),
        (["1 acquire 0-1", "2 acquire 5-"], "k", 0, 1),
        # Nothing was asked in between.
        (["1 acquire 0-1", "1 release 2-3", "2 acquire 900-902"], "k", 900, 2),
        # Each lock by itself, and those who share one.
        (["1 acquire:a 0-1", "2 acquire:b 0-8", "1 acquire:a 9-10"], "b", 0, 8),
        (["1 acquire 0-1 shared=true", "2 acquire 2-9!", "3 acquire 4-5 shared=true"], "k", 5, 4),
    ],
)
def test_the_longest(lines: list[str], key: str, since_ms: int, length_ms: int) -> None:
    longest = longest_ungranted(dsl.history(*lines).table)
    assert longest is not None
    found = longest.key or "k", longest.since_ns // NS_PER_MS, longest.length_ns // NS_PER_MS
    assert found == (key, since_ms, length_ms)


def test_of_a_history_without_a_lock() -> None:
    history = dsl.history("1 write 0-1 1", "2 read 2-3 1")
    assert longest_ungranted(history.table) is None
    assert without_grant(judge(history)) == ""


def test_it_is_told_in_a_line() -> None:
    history = dsl.history("1 acquire 0-1", "1 release 2-3", "2 acquire 5-6!", "2 acquire 900-1011")
    told = without_grant(judge(history))
    assert told == "for 1.006 s at most while k was asked for (from 0.005 s on)"


@st.composite
def requests(draw: st.DrawFn) -> list[str]:
    lines = []
    for number in range(draw(st.integers(1, 12))):
        start = draw(st.integers(0, 30))
        length = draw(st.integers(1, 12))
        ending = draw(st.sampled_from(["-{}", "-{}!", "-"])).format(start + length)
        lines.append(f"{number} acquire:{draw(st.sampled_from('abc'))} {start}{ending}")
    return lines


def by_brute_force(history: History) -> int:
    """The most moments in a row at which none of a lock's requests was answered by a grant, and one
    was sent before and heard of then or later."""
    longest = 0
    acquires = sorted((o for o in history.operations if o.f == F.ACQUIRE), key=lambda o: o.key)
    for _, group in groupby(acquires, key=lambda o: o.key):
        asked = list(group)
        heard = {id(o): o.start_ns if o.unknown else o.last_ns for o in asked}
        ends = sorted({-1, *(heard[id(o)] for o in asked if o.ok)})
        for since, until in pairwise([*ends, max(heard.values())]):
            starts = [o.start_ns for o in asked if heard[id(o)] > since]
            longest = max([longest, *(until - max(since, start) for start in starts)])
    return longest


@given(requests())
def test_by_brute_force(lines: list[str]) -> None:
    history = dsl.history(*lines)
    longest = longest_ungranted(history.table)
    assert longest is not None
    assert longest.length_ns == by_brute_force(history)
