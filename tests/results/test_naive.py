"""Work that takes longer than its lease, then blind releases: the cause comes first."""

from __future__ import annotations

import json

import pytest

from lockcheck.checker import judge
from lockcheck.checker.finding import Judgement
from lockcheck.history import History
from lockcheck.results.report.marks import KINDS
from lockcheck.results.story.seen import ended_early, own_cause
from lockcheck.runs.facts import RunFacts
from tests.checker.dsl import history
from tests.results import story
from tests.results.test_report import _Page, report, words

TAKEN = ' = {"removed": 1, "blind": true}'
NAIVE = f"""
    1 acquire:k1 0-1
    2 acquire:k1 1003-1004
    2 read:k1 1005-1006
    1 write:k1 1503-1504 v1 seq=1
    1 release:k1 1505-1506 {TAKEN}
    3 acquire:k1 1508-1509
    3 read:k1 1510-1511 = v1
    2 write:k1 2005-2006 v2 seq=2
    2 release:k1 2007-2008 {TAKEN}
    4 acquire:k1 2010-2011
    4 read:k1 2012-2013 = v2
    3 write:k1 2500-2501 v3 base=v1 seq=3
    4 write:k1 2600-2601 v4 base=v2 seq=4
    4 release:k1 2602-2603 {TAKEN}
    3 release:k1 2610-2611"""
# What n1 overwrote is there again when n3 has written: it had read it before.
IN_ITS_TURN = f"""
    1 acquire:k1 0-1
    1 read:k1 2-3 seq=1 = null
    fault pause n1 5-1100 effect=stops
    2 acquire:k1 1003-1004
    2 write:k1 1007-1008 v1 seq=2
    2 release:k1 1009-1010 {TAKEN}
    3 acquire:k1 1015-1016
    3 read:k1 1017-1018 seq=3 = v1
    1 write:k1 1110-1111 v2 seq=4
    1 release:k1 1112-1113 {TAKEN}
    3 write:k1 1120-1121 v3 base=v1 seq=5
    3 release:k1 1122-1123"""
RERUN = "lockcheck run --backend redis-naive --nemesis none --think 1500ms --time-limit 15s"


@pytest.fixture(scope="module")
def naive() -> tuple[History, Judgement]:
    told = history(NAIVE, ledger=True, backend="redis-naive", ttl_ms=1000, stores=True, clients=5)
    return told, judge(told)


def the_story(naive: tuple[History, Judgement]) -> story.Story:
    told, judged = naive
    [incident] = [i for i in story.incidents(judged.findings) if i.foreign_releases]
    return story.tell_incident(told, incident)


def test_blame_and_remedy_begin_with_the_work_that_took_too_long(
    naive: tuple[History, Judgement],
) -> None:
    told = the_story(naive)
    assert told.blame.startswith("It began when n1 (its work took longer than the lease) outlived")
    assert told.prevention.index("longer lease") < told.prevention.index("Compare and delete, too")
    assert own_cause(naive[1]).startswith("work that took longer than the lease (n1's by 50")
    assert "cause: work that took longer than the lease" in words(
        report(*naive[:1], judgement=naive[1])
    )


def test_nobody_is_left_out_where_few_took_part(naive: tuple[History, Judgement]) -> None:
    steps = the_story(naive).steps
    assert {step.who for step in steps} >= {"n1", "n2", "n3", "n4"}


def test_a_lease_that_was_taken_away_does_not_run_out_later(
    naive: tuple[History, Judgement],
) -> None:
    over = [step.who for step in the_story(naive).steps if "its lease on k1 ran out" in step.text]
    assert over == ["n1"]  # n2 and n3 had lost theirs before


def test_each_blind_release_is_drawn_and_in_the_legend(naive: tuple[History, Judgement]) -> None:
    told, judged = naive
    html = report(told, judgement=judged)
    marks = json.loads(_Page(html).data)["marks"]
    drawn = [KINDS[state] for state in marks["state"]]
    foreign_releases = [
        o for incident in story.incidents(judged.findings) for o in incident.foreign_releases
    ]
    assert drawn.count("took") == len(foreign_releases) >= 2
    assert "blind release: it took another client's lock away" in words(html)


def test_red_is_for_who_did_it(naive: tuple[History, Judgement]) -> None:
    """n2 overwrote what n1 wrote after its lease, and had every right to write."""
    told, judged = naive
    html = report(told, judgement=judged)
    marks = json.loads(_Page(html).data)["marks"]
    states = {marks["number"][i]: KINDS[state] for i, state in enumerate(marks["state"])}
    assert states[2] == "unawares"
    assert "write that overwrote another client's, without being at fault" in words(html)


def test_a_stale_write_that_is_lost_in_its_turn_is_told_as_one() -> None:
    told = history(IN_ITS_TURN, ledger=True, backend="redis-naive", ttl_ms=1000, stores=True)
    judged = judge(told)
    assert story.detail(judged).startswith(
        "1 late write accepted (from a client whose lock had gone to another), which other "
        "writes then overwrote, at 1.111 s. n1 slept"
    )
    [incident] = story.incidents(judged.findings)
    *_, written, released = [step.text for step in story.tell_incident(told, incident).steps]
    assert written.endswith(
        "the late write 2 of n1 is lost in its turn, and what that overwrote is there again"
    )
    assert released == "released k1, which had been taken from it"


@pytest.mark.parametrize(
    ("changes", "ended"),
    [
        ({}, "after 2.611 s of 15s, since there was a violation (--no-stop-on-violation goes on)"),
        ({"stops_within_ms": 0}, ""),  # it goes on, or is no run of ours
        ({"problem": "the agent went away"}, ""),
        ({"stops_within_ms": 2_000}, ""),
    ],
)
def test_why_a_run_lasted_no_longer(
    naive: tuple[History, Judgement], changes: dict[str, object], ended: str
) -> None:
    given: dict[str, object] = {"stops_within_ms": 15_000, **changes}
    told = {"run_id": "", "started_at": "", "rerun_command": RERUN, "check_command": ""}
    facts = RunFacts(**told, plan=(), versions=(), **given)  # type: ignore[arg-type]
    assert ended_early(*naive, facts) == ended


def test_what_makes_it_short_is_told_once_beside_a_violation(
    naive: tuple[History, Judgement],
) -> None:
    told, judged = naive
    assert len(judged.doubts) == 2
    text = words(report(told, judgement=judged))
    assert text.count("The run was short: enough for a violation, but not for an OK (the lock") == 1
    assert "Too few operations" not in text
    assert "Also to know" in text


def test_commands_break_between_options_only(naive: tuple[History, Judgement]) -> None:
    html = report(naive[0], judgement=naive[1], rerun_command=f"{RERUN} --keep --out a/b --seed 7")
    for word in ("lockcheck", "--backend redis-naive", "--think 1500ms", "--keep", "--seed 7"):
        assert f"<span>{word}</span>" in html
    assert f"{RERUN} --keep --out a/b --seed 7" in words(html)  # and is copied as it was
