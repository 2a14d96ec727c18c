"""The main point: a sentence of at most twenty words, the verdict to the eye, whose it was, and a
picture of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockcheck.check.loading import loaded
from lockcheck.check.patience import FOR_A_RUN_MS, patient_for
from lockcheck.check.recheck import judged
from lockcheck.checker import CHECKS, judge
from lockcheck.checker.finding import Code, Verdict
from lockcheck.durations import parse_duration_ms
from lockcheck.errors import LockcheckError
from lockcheck.formats import ReadOptions
from lockcheck.nemesis.clock.motion import JUMP
from lockcheck.results.judgement import NO_RUN
from lockcheck.results.picture_text import NAMES, WIDE, lines_of_picture
from lockcheck.results.report.picture import svg
from lockcheck.results.story.narrative import Narrative
from lockcheck.results.story.point import MOST_WORDS, Level
from lockcheck.results.story.properties import properties
from lockcheck.results.story.untested import unguarded, untested
from lockcheck.results.story.wording.acts import USUAL_JUMP
from lockcheck.results.ticket import ticket
from tests.checker import dsl
from tests.results.made_up import CASES, judgement
from tests.results.test_story import Recording, simulate
from tests.results.test_story import judge as as_if_judged

HISTORIES = Path(__file__).parents[1] / "checker" / "histories"
PAUSED = "fault pause n1 5-120 effect=stops"
OUTLIVED = ("1 acquire 0-1", "2 acquire 110-111", "1 release 130-131", "2 release 140-141")
EARLY = ("1 acquire 0-1", "2 acquire 50-51", "1 release 60-61", "2 release 70-71")
OVERWROTE = (
    "1 acquire 0-1",
    "1 read 2-3 = a",
    "2 acquire 110-111",
    "2 read 112-113 = a",
    "2 write 114-115 b base=a seq=2",
    "2 release 116-117",
    "1 write 121-122 c base=a seq=3",
    "1 release 123-124",
)
WITH_49_TO_GO = "it let n2 in while n1's lease had 49 ms to go."
BOTH = "and both took it for theirs."
ENDED_EARLY = "client n1's lock ended early, n2 got it too."
BLIND = (
    "1 acquire 0-1",
    "2 acquire 110-111",
    '1 release 130-131 = {"removed": 1, "blind": true}',
    "3 acquire 140-141",
    "2 release 160-161",
    "3 release 170-171",
)
RUN: dict[str, Any] = {
    "ttl_ms": 100,
    "backend": "mine",
    "server": "Redis",
    "lock_nodes": ("r1", "r2", "r3"),
}


def told(*lines: str, **terms: Any) -> Narrative:
    return Narrative(judge(dsl.history(*lines, **(RUN | terms))))


# --- the sentence ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "terms", "sentence", "whose"),
    [
        (
            (*OVERWROTE, PAUSED),
            {},
            "Client n1 was paused past its lease; n2 got the lock, and n1 overwrote n2's write.",
            "no one's: the limit of leases",
        ),
        (
            OVERWROTE,
            {},
            "Client n1 worked past its lease; n2 got the lock, and n1 overwrote n2's write.",
            "application: it works for too long",
        ),
        (
            (*OUTLIVED, "fault partition n1 5-120 effect=cuts"),
            {},
            f"Client n1, cut off, worked past its lease; n2 got the lock, {BOTH}",
            "lock client: it did not stop",
        ),
        (
            EARLY,
            {},
            "Without any disturbance, Redis gave client n2 the lock that n1 held.",
            "lock service (Redis)",
        ),
        (
            EARLY,
            {"accused": "PgBouncer"},
            "Without any disturbance, PgBouncer gave client n2 the lock that n1 held.",
            "PgBouncer",
        ),
        (
            (*EARLY, "fault clock r1,r2,r3 5-120 effect=skews asked=clock:jump=+30s@majority"),
            {},
            f"The clocks of three Redis servers jumped 30 s: {ENDED_EARLY}",
            "lock service (Redis)",
        ),
        (
            (*EARLY, "fault kill r1 5-40 effect=ends"),
            {},
            "Redis r1 restarted and forgot client n1's lock; n2 got it too.",
            "lock service (Redis)",
        ),
        (
            (*EARLY, "fault failover r1 5-40 effect=ends"),
            {},
            "Redis failed over and forgot client n1's lock; n2 got it too.",
            "lock service (Redis)",
        ),
    ],
)
def test_cause_act_and_damage_in_that_order(
    lines: tuple[str, ...], terms: dict[str, object], sentence: str, whose: str
) -> None:
    point = told(*lines, **terms).point
    assert point.sentence == sentence
    assert (point.level, point.whose) == (Level.VIOLATION, whose)


@pytest.mark.parametrize("code", Code)
def test_each_code_has_one_of_at_most_twenty_words(code: Code) -> None:
    if code not in CASES:
        pytest.skip("its story is who held the lock when: tested above")
    case = CASES[code]()
    point = Narrative(judgement(case.history, case.finding)).point
    assert 2 <= len(point.sentence.split()) <= MOST_WORDS
    assert point.whose


def test_all_stored_histories_have_one_of_at_most_twenty_words() -> None:
    seen = 0
    for path in sorted(HISTORIES.iterdir()):
        try:
            with loaded(str(path), ReadOptions()) as found:
                point = Narrative(judged(found.history, patient_for(FOR_A_RUN_MS))).point
        except LockcheckError:  # it tells which format it is only by an option
            continue
        assert 2 <= len(point.sentence.split()) <= MOST_WORDS, (path.name, point.sentence)
        seen += 1
    assert seen > 20


def test_who_was_first_is_not_said_where_only_the_server_knows() -> None:
    """The first client by its token had its answer last."""
    holds = ("1 acquire 0-12 token=1", "2 acquire 1-10 token=2", "1 release 30-31")
    both = told(*holds, "2 release 40-41", ttl_ms=0)
    assert (
        both.headline
        == "Without any disturbance, Redis gave clients n1 and n2 the lock at the same time."
    )
    assert both.point.why == "It let n1 and n2 in at the same time."
    assert both.contrast is not None
    assert both.contrast.happened == "n2 got it at 0.010 s, and n1 at 0.012 s."
    assert both.picture is not None
    assert [lane.name for lane in both.picture.lanes] == ["client n2", "client n1"]
    assert both.picture.lanes[1].marks[0].text == "granted as well"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ((*OVERWROTE, PAUSED), "A paused client cannot notice that its lease has ended."),
        (OVERWROTE, "Its work went on for 23 ms after its lease had ended."),
        (
            (*OUTLIVED, "fault partition n1 5-120 effect=cuts"),
            "It ran all the while, and could have counted that its lease was over.",
        ),
        (EARLY, "It let n2 in while n1's lease had 49 ms to go."),
        (
            (*EARLY, "fault clock r1,r2,r3 5-120 effect=skews"),
            f"It counts leases by clocks that can jump: {WITH_49_TO_GO}",
        ),
        (BLIND, "It released the lock without checking whose it was."),
    ],
)
def test_a_sentence_says_why_it_is_theirs(lines: tuple[str, ...], why: str) -> None:
    assert told(*lines).point.why == why


def test_what_lockcheck_did_is_told_apart() -> None:
    assert told(*OVERWROTE, PAUSED).point.did == "lockcheck paused n1 for 115 ms."
    assert told(*OVERWROTE).point.did == "lockcheck injected no fault."
    assert told(*OVERWROTE, backend="").point.did == ""


# --- the verdict to the eye ----------------------------------------------------------------------


def test_what_only_the_guard_kept_right_is_no_plain_ok() -> None:
    run = Recording(terms={"guard": "fence"})
    simulate(run, 8, trouble=4, guard=True)
    guarded = Narrative(as_if_judged(run.history(), Verdict.OK))
    refused = guarded.judgement.counts.stale_writes_refused
    sentence = f"Safe only because of the fence: it refused all {refused} late writes."
    assert (guarded.point.level, guarded.point.sentence) == (Level.GUARDED, sentence)
    assert guarded.point.whose.startswith("no one's")
    assert guarded.advice == ("Keep the fence, and a test that fails without it.",)
    assert guarded.picture is not None
    assert "refused by the fence" in str(guarded.picture)


def test_a_green_one_says_what_was_not_tested() -> None:
    terms = dsl.history("1 acquire 0-1", **RUN, faults=("pause", "kill:server"), stores=True).terms
    assert [option for _, option in untested(terms)] == ["--nemesis partition", "--nemesis clock"]
    assert "paused past its lease" in unguarded(terms)
    log = dsl.history("1 acquire 0-1").terms
    assert untested(log) == ()
    assert unguarded(log) == ""


# --- expected, happened, and what to do ---------------------------------------------------------


def test_expected_and_happened() -> None:
    contrast = told(*EARLY).contrast
    assert contrast is not None
    assert contrast.expected == 'n1 alone holds the lock "k" until its lease ends, at 0.100 s.'
    assert contrast.happened == "n2 got it at 0.051 s: 49 ms too early."
    late = told(*OVERWROTE, PAUSED).contrast
    assert late is not None
    assert late.expected == "No write of n1 is accepted after its lease has ended, at 0.100 s."


def test_the_direct_cure_comes_first_and_there_are_at_most_three() -> None:
    pooler = told(*EARLY, accused="PgBouncer", instead="Give it a connection of its own.")
    [(_, story)] = pooler.stories(1)
    assert story.advice[0] == "Give it a connection of its own."
    [(_, too_long)] = told(*OVERWROTE, stores=True).stories(1)
    assert too_long.advice[0] == "Make the lease longer than the work, or renew it meanwhile."
    assert "--guard fence" in too_long.advice[1]
    assert len(too_long.advice) == 2


def test_it_fits_into_a_ticket() -> None:
    written = ticket(told(*OVERWROTE, PAUSED, stores=True), NO_RUN)
    point, *rest = written.splitlines()
    assert point.startswith("**Violation**: Client n1 was paused past its lease")
    assert "- Expected: No write of n1 is accepted after its lease has ended, at 0.100 s." in rest
    assert any(
        line.startswith("1. Have the storage refuse a write once the lock has gone")
        for line in rest
    )
    assert any(line.startswith("    client n1  ") and "━" in line for line in rest)


# --- the picture --------------------------------------------------------------------------------


def test_the_picture_has_holder_intruder_and_fault_with_words_at_their_marks() -> None:
    early = told(*EARLY, "fault kill r1 5-40 effect=ends").picture
    assert early is not None
    assert [lane.name for lane in early.lanes] == ["client n1", "client n2", "Redis r1"]
    marks = {mark.text for lane in early.lanes for mark in lane.marks}
    assert marks == {
        "its lease goes on to 0.100 s →",
        "granted too early",
        "releases it",
        "← kill, at 0.005 s",
    }
    assert early.taken_at is not None
    assert 1 / 4 < early.taken_at < 2 / 3  # the incident is in the middle
    late = told(*OVERWROTE, PAUSED).picture
    assert late is not None
    assert [bar.kind for bar in late.lanes[0].bars] == ["hold", "after", "fault"]
    assert [mark.text for mark in late.lanes[0].marks] == [
        "its lease ends",
        "← paused, at 0.005 s",
        "overwrote n2's write",
    ]


def test_it_is_drawn_without_script_and_in_characters_of_eighty_columns() -> None:
    picture = told(*OVERWROTE, PAUSED).picture
    assert picture is not None
    drawn = svg(picture)
    assert drawn.startswith("<svg")
    assert "overwrote n2&#39;s write" in drawn
    assert "script" not in drawn
    lines = lines_of_picture(picture)
    assert max(map(len, lines)) <= NAMES + WIDE <= 78
    assert any("its lease ends" in line for line in lines)


def test_a_name_from_a_history_is_no_markup() -> None:
    lines = [line.replace("1 ", "1@<b>x ", 1) if line[0] == "1" else line for line in EARLY]
    picture = told(*lines).picture
    assert picture is not None
    assert "<b>" not in svg(picture)


def test_it_has_a_time_axis_and_a_key() -> None:
    picture = told(*OVERWROTE, PAUSED).picture
    assert picture is not None
    assert [text for _, text in picture.ticks] == ["0.100 s", "0.110 s", "0.120 s"]
    assert [kind for kind, _ in picture.key] == ["hold", "after", "fault"]
    drawn, lines = svg(picture), lines_of_picture(picture)
    assert "0.110 s" in drawn
    assert "thinks it still has it" in drawn
    assert "0.110 s" in lines[-2]
    assert lines[-1] == "━ holds the lock   ╍ thinks it still has it"  # the pause is behind these
    assert "injected fault" in drawn


def test_without_two_holders_it_is_of_the_whole_run() -> None:
    lines = ("1 acquire 0-1", "1 release 2-3", "2 acquire 4-5", "2 release 900-901")
    picture = told(*lines, "fault kill r1 5-400 effect=ends").picture
    assert picture is not None
    assert [lane.name for lane in picture.lanes] == ["client n1", "client n2", "Redis r1"]
    assert [bar.kind for lane in picture.lanes for bar in lane.bars] == ["hold", "hold", "fault"]
    assert picture.lanes[2].marks[0].text == "kill"
    assert svg(picture).count("<rect") == 2 * (3 + len(picture.key))  # for a phone, too


def test_holds_that_are_too_close_to_be_seen_apart_are_one_bar() -> None:
    lines = [
        f"{n % 9} {what}"
        for n in range(2000)
        for what in (f"acquire {2 * n}-{2 * n}", f"release {2 * n + 1}-{2 * n + 1}")
    ]
    picture = told(*lines).picture
    assert picture is not None
    assert [lane.name for lane in picture.lanes][-1] == "3 more clients"
    assert len(svg(picture)) < 400_000


def test_where_nothing_was_held_there_is_none() -> None:
    assert told("1 read 0-1 = a").picture is None


def test_who_deleted_whose_lock_is_drawn() -> None:
    narrative = told(*BLIND)
    assert narrative.headline == "Client n1 worked past its lease, then deleted n2's lock."
    picture = narrative.picture
    assert picture is not None
    assert picture.deleted
    assert [lane.name for lane in picture.lanes] == ["client n1", "client n2", "client n3"]
    assert [mark.text for mark in picture.lanes[0].marks] == ["its lease ends", "deletes the lock"]
    assert [mark.text for mark in picture.lanes[2].marks] == ["granted"]


def test_each_property_has_its_mark() -> None:
    narrative = told(*OVERWROTE, PAUSED, stores=True)
    marks = {each.text: each.held for each in properties(narrative.history, narrative.judgement)}
    assert marks["1 overlap"] is False
    assert marks["1 lost write"] is False
    assert marks["locks become free again"] is True
    assert marks["no job run twice"] is None  # no job was run
    assert marks["first come, first served"] is None  # it promises no order
    assert marks["no deadlock"] is None  # there was one lock
    assert len(marks) == len(CHECKS)


def test_of_a_register_only_what_was_tested_is_listed() -> None:
    register = Narrative(judge(dsl.history("1 write:x 0-1 a", "2 read:x 2-3 = a")))
    assert [each.text for each in properties(register.history, register.judgement)] == [
        "all answers fit one order"
    ]


def test_faults_of_another_tools_test_are_not_lockchecks() -> None:
    assert told(*OVERWROTE, PAUSED, backend="").point.did == "The test paused n1 for 115 ms."


def test_a_guard_that_let_some_in_did_not_refuse_all() -> None:
    run = Recording(terms={"guard": "cas"})
    simulate(run, 8, trouble=4, guard=True)
    judged_ok = as_if_judged(run.history(), Verdict.OK)
    refused = judged_ok.counts.stale_writes_refused
    taken = replace(judged_ok.findings[0], code=Code.STALE_WRITE, effect=Verdict.OK)
    narrative = Narrative(replace(judged_ok, findings=(*judged_ok.findings, taken)))
    expected = f"Safe only because of compare-and-set: it refused {refused} late writes."
    assert narrative.headline == expected


def test_a_jump_that_is_not_named_is_the_faults_own_default() -> None:
    assert parse_duration_ms(USUAL_JUMP.removeprefix("+")) == JUMP.default
