"""A blind release that took away somebody else's lock, and releases that did not."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Culprit, Finding, Verdict
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import judged, ns

BLIND = '= {"removed": 1, "blind": true}'
NOTHING = '= {"removed": 0, "blind": true}'
BY_FIELD = 'blind=true = {"removed": 1}'
TAKEN = f"""
    1 acquire 0-1
    2 acquire 110-111
    1 release 120-121 {BLIND}
    2 release 150-151 {NOTHING}"""


def foreign(*lines: str, **terms: Any) -> list[Finding]:
    found = judged(*lines, ttl_ms=100, **terms).findings
    return [finding for finding in found if finding.code == "foreign-release"]


@pytest.mark.parametrize("said", [BLIND, BY_FIELD])
def test_the_lock_of_another_was_taken_away(said: str) -> None:
    (finding,) = foreign(TAKEN.replace(BLIND, said))
    assert [hold.process for hold in finding.holds] == [1, 2]
    assert (finding.time_ns, finding.length_ns) == (ns(120), ns(29))
    assert finding.blame.by_ns == ns(29)
    assert finding.effect is Verdict.VIOLATION
    assert finding.blame.who is Culprit.CLIENT
    assert finding.blame.released_by is finding.holds[0]
    assert finding.blame.release is finding.operations[0]
    assert note(finding) == ""


ACCEPTED = {
    "its own": f"1 acquire 0-1 \n 1 release 50-51 {BLIND} \n 2 acquire 60-61",
    "it removed nothing": TAKEN.replace(BLIND, NOTHING),
    "it compared first": TAKEN.replace(BLIND, '= {"removed": 1}'),
    "it removed nothing, by its field": TAKEN.replace(BLIND, BY_FIELD.replace("1", "0")),
    "it says that it was not blind": TAKEN.replace(BLIND, '= {"removed": 1, "blind": false}'),
    "it says something else": TAKEN.replace(BLIND, "= OK"),
    "its answer never came": TAKEN.replace(f"120-121 {BLIND}", "120-121?"),
    "on another key": TAKEN.replace("2 acquire", "2 acquire:b").replace("2 release", "2 release:b"),
    "the other one asked before it was granted": f"""
        2 acquire 0-115
        1 acquire 3-4
        1 release 120-121 {BLIND}
        2 release 150-151 {NOTHING}""",
    "the other one was granted while it was under way": f"""
        1 acquire 0-1
        1 release 120-130 {BLIND}
        2 acquire 121-122
        2 release 150-151 {BLIND}""",
    "the other one had let go": f"""
        1 acquire 0-1
        2 acquire 110-111
        2 release 115-116 {BLIND}
        1 release 120-121 {BLIND}""",
    "the other one let go while it was under way": f"""
        1 acquire 0-1
        2 acquire 110-111
        1 release 120-130 {BLIND}
        2 release 125-126 {NOTHING}""",
    "the other one let go at the very moment of the answer": f"""
        1 acquire 0-1
        2 acquire 110-111
        1 release 120-130 {BLIND}
        2 release 130-131 {NOTHING}""",
    "nobody knows whether the other one was granted": f"""
        1 acquire 0-1
        2 acquire 110-115?
        1 release 120-130 {BLIND}""",
}


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(lines: str) -> None:
    assert foreign(lines) == []


def test_a_client_that_knew_it_had_lost_the_lock_and_released_all_the_same() -> None:
    (finding,) = foreign(TAKEN.replace("1 release", "1 lost 119 \n 1 release"))
    assert finding.holds[1].process == 2


def test_a_third_that_was_let_in_by_it_is_named() -> None:
    (finding,) = foreign(TAKEN, "3 acquire 125-126 \n 3 release 160-161")
    assert [hold.process for hold in finding.holds] == [1, 2, 3]
    assert "n3 was let in while n2 still held it" in note(finding)


@pytest.mark.parametrize("third", ["3 acquire 151-152", "3 acquire 215-216"])
def test_a_third_after_the_victims_hold_or_lease_is_no_matter(third: str) -> None:
    lines = TAKEN.replace("2 release 150-151", "2 release 151-151.5")
    assert len(foreign(lines, third)[0].holds) == 2
    assert len(foreign(TAKEN, "3 acquire 149-150")[0].holds) == 2  # in the moment of its release
    longer = TAKEN.replace("2 release 150-151", "2 release 300-301")
    assert len(foreign(longer, "3 acquire 215-216")[0].holds) == 2


def test_the_victim_is_the_last_that_was_let_in() -> None:
    (finding,) = foreign(
        "1 acquire 0-1",
        "2 acquire 110-111",
        "3 acquire 230-231",
        f"1 release 240-241 {BLIND}",
        f"2 release 300-301 {NOTHING}",
        f"3 release 302-303 {NOTHING}",
    )
    assert [hold.process for hold in finding.holds] == [1, 3]


def test_it_says_so_where_it_may_have_been_yet_another_ones() -> None:
    (finding,) = foreign(TAKEN, "3 acquire 115-118?")
    assert "certainly not its own" in note(finding)
    (finding,) = foreign(TAKEN, "3 acquire 115-118!")
    assert note(finding) == ""


@pytest.mark.parametrize("guard", ["fence", "cas"])
def test_behind_a_guard_it_is_only_shown(guard: str) -> None:
    (finding,) = foreign(TAKEN, guard=guard)
    assert finding.effect is Verdict.OK


def test_who_may_hold_it_together_takes_nothing_away_from_each_other() -> None:
    assert foreign(TAKEN, permits=2) == []
    shared = TAKEN.replace("-1\n", "-1 shared=true\n").replace("-111\n", "-111 shared=true\n")
    assert shared.count("shared=true") == 2
    assert foreign(shared) == []
