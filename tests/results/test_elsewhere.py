"""Other people's histories: no nodes, no holds, no leases, and very many operations."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import msgspec
import pytest

from lockcheck.checker import judge
from lockcheck.checker.case import Case
from lockcheck.checker.finding import Code, Definition, Judgement, Proof, Verdict
from lockcheck.checker.linearizability import Answer
from lockcheck.checker.linearizability.models import register
from lockcheck.cli.terminal import print_verdict
from lockcheck.history import History
from lockcheck.results.report.choice import chosen, merged, within
from lockcheck.results.story.narrative import Narrative
from lockcheck.results.story.wording.codes import note
from lockcheck.results.story.wording.definitions import SECOND_LOOK
from lockcheck.runs.facts import RunFacts
from tests.checker.dsl import history
from tests.results import story
from tests.results.conftest import Opened
from tests.results.made_up import found, judgement, not_linearizable, somebody_elses
from tests.results.test_report import ATTACK, _Page, report, words

DISAGREEING = Definition("k1", "mutex", "sweep", Verdict.OK, 2)
BOTH = Definition("k2", "mutex", "sweep", Verdict.VIOLATION, 1)
UNTOLD = Definition("k3", "mutex", "search", Verdict.UNKNOWN, 0, "no patience")
FINE = Definition("k4", "mutex", "sweep", Verdict.OK, 0)
REGISTER = Definition("x", "register", "zones", Verdict.VIOLATION, None)
YET = (
    "The two checks disagree: two clients held it at once, yet each grant came after the previous "
    "lease"
)
TWO = (
    "Both checks agree: two clients held it at once. No order of its operations explains the "
    "answers."
)


def many(operations: int, clients: int = 5) -> History:
    lines = [
        f"{n % clients} write:x {n * 2}-{n * 2 + 1.5} {n}"
        if n % 2
        else f"{n % clients} read:x {n * 2}-{n * 2 + 1.5} = {n - 1}"
        for n in range(1, operations + 1)
    ]
    return somebody_elses(history(*lines))


def elsewhere(of: History, judged: Judgement) -> str:
    return report(of, judgement=judged, rerun_command="", plan=(("history", "jepsen.edn"),))


def said(capsys: pytest.CaptureFixture[str], of: History, judged: Judgement) -> str:
    facts = RunFacts(
        run_id="r1", started_at="", plan=(), versions=(), rerun_command="", check_command=""
    )
    print_verdict(Narrative(judged), None, facts)
    return re.sub(r"\s+", " ", capsys.readouterr().out)


def no_word_of_a_lock(text: str) -> bool:
    return re.search(r"\block(s|ed)?\b|\bholds?\b|\blease|\bfencing", text) is None


@pytest.mark.parametrize("violated", [True, False])
def test_a_register_is_no_lock(capsys: pytest.CaptureFixture[str], violated: bool) -> None:
    case = not_linearizable()
    verdicts = (REGISTER,) if violated else ()
    judged = judgement(case.history, *((case.finding,) if violated else ()), definitions=verdicts)
    page = words(elsewhere(case.history, judged)).replace("Judge the stored history", "")
    terminal = said(capsys, case.history, judged)
    assert no_word_of_a_lock(page)
    assert no_word_of_a_lock(terminal)
    assert "5 clients, 7 operations" in terminal
    assert "runs it again" not in page
    if violated:
        assert "Object by object: do all answers fit together?" in page
        assert "x (register): No order of its operations explains the answers." in terminal
        assert "because 1 was read after 2. Judged by the model register: what was" in terminal


def test_nothing_found_in_a_register() -> None:
    fine = (Definition("3 keys", "register", "zones", Verdict.OK, None),)
    of = many(20)
    judged = judgement(of, definitions=fine)
    expected = (
        "In 20 operations by 5 clients every answer is explained by an order of the operations."
    )
    assert story.detail(judged) == expected
    text = words(elsewhere(of, judged))
    assert "What was found Nothing." in text
    assert "3 keys (register): all answers fit together." in text


def test_of_a_part_of_a_history_nobody_counts_the_clients() -> None:
    """Millions of operations are not read one by one: only those around what was found."""
    counts = replace(judgement(many(20)).counts, operations=10_000_000)
    empty = History.of([])
    judged = Judgement(Verdict.OK, (), (), counts, (REGISTER,), case=Case(empty))
    assert story.detail(judged).startswith("In 10,000,000 operations every answer")
    page = elsewhere(empty, judged)
    assert no_word_of_a_lock(words(page))
    assert json.loads(_Page(page).data)["omitted"] == 10_000_000
    locks = replace(judged, definitions=(FINE,))
    assert story.about_locks(empty, locks)


def test_the_picture_shows_calls_as_they_were() -> None:
    case = not_linearizable()
    data = json.loads(_Page(elsewhere(case.history, judgement(case.history, case.finding))).data)
    assert {lane["rows"] for lane in data["lanes"]} == {0}
    at_fault = [lane["name"] for lane in data["lanes"] if lane["evidence"]]
    assert at_fault == ["process 0", "process 1", "process 2", "process 3"]
    labels = [data["texts"][number] for number in data["evidence"]["text"]]
    assert labels == ["write 1 to x: done", "write 2 to x: done", "read x: 2", "read x: 1"]
    calls = [data["texts"][number] for number in data["marks"]["call"] if number >= 0]
    assert calls == ["cas 7 to 8 on x", "add 9 on x"]
    assert len(data["marks"]["lane"]) == 7


def test_a_browser_draws_it(opened: Opened) -> None:
    case = not_linearizable()
    tab = opened(elsewhere(case.history, judgement(case.history, case.finding)))
    assert tab.js("document.documentElement.dataset.ready") == "1"
    assert "Incident 1 of 1" in tab.text("#finding-label")
    assert tab.errors == []


# --- bounds ------------------------------------------------------------------------------------


def test_a_page_of_very_many_operations_is_bounded() -> None:
    of = many(60_000)
    last = len(of.operations) - 1
    case = found(Code.NOT_LINEARIZABLE, of, operations=(last - 2, last - 1, last))
    html = elsewhere(of, judgement(of, case.finding))
    assert len(html) < 2_500_000
    data = json.loads(_Page(html).data)
    assert len(data["marks"]["lane"]) <= 20_000
    assert len(data["marks"]["lane"]) + data["omitted"] == 60_000
    drawn = set(data["marks"]["start"])
    assert {of.operations[n].start_ns // 1000 for n in (last - 2, last - 1, last)} <= drawn


def test_of_very_many_processes_those_at_fault_have_a_lane() -> None:
    of = many(3_000, clients=600)
    case = found(Code.NOT_LINEARIZABLE, of, operations=(2_990, 2_995))
    data = json.loads(_Page(elsewhere(of, judgement(of, case.finding))).data)
    assert len(data["lanes"]) == 48
    assert data["hidden"] == 552
    names = {lane["name"] for lane in data["lanes"]}
    assert {of.operations[n].node for n in (2_990, 2_995)} <= names


def test_holds_are_bounded_too() -> None:
    lines = [
        f"1 {f} {n * 4 + shift}-{n * 4 + shift + 1}"
        for n in range(21_000)
        for f, shift in (("acquire", 0), ("release", 2))
    ]
    of = somebody_elses(history(*lines))
    html = elsewhere(of, judgement(of))
    assert len(json.loads(_Page(html).data)["holds"]["lane"]) == 20_000
    assert len(html) < 2_500_000


def test_what_is_near_a_finding_is_chosen_first() -> None:
    items = list(range(1000))
    picked = chosen(items, 100, [range(500, 520)], lambda item: item)
    assert len(picked) <= 100
    assert list(picked) == sorted(picked)
    assert set(range(500, 521)) <= set(picked)
    assert picked[0] == 0
    assert picked[-1] > 900
    assert chosen(items, 1000, [], lambda item: item) is items
    crowded = chosen(items, 100, [range(1000)], lambda item: item)
    assert set(range(50)) <= set(crowded)
    assert crowded[-1] > 900


def test_windows_that_touch_are_one() -> None:
    apart = merged([range(10, 20), range(5), range(15, 30), range(40, 41)])
    assert apart == [range(5), range(10, 30), range(40, 41)]
    inside = [at for at in range(50) if within(apart, at)]
    assert inside == [*range(6), *range(10, 31), 40, 41]


# --- two definitions ---------------------------------------------------------------------------


def test_disagreements_come_first_and_the_rest_is_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    of = somebody_elses(history("1 acquire 0-1", "1 release 2-3"))
    judged = judgement(of, definitions=(FINE, BOTH, UNTOLD, DISAGREEING))
    compared = story.side_by_side(judged.definitions, 2)
    assert compared.lines == (
        f"k1 (lock that anybody may release): {YET} had ended or been released.",
        f"k2 (lock that anybody may release): {TWO}",
    )
    assert compared.summary == (
        "1 more object like these; k4 (lock that anybody may release): no overlap, and all answers "
        "fit together"
    )
    text = words(elsewhere(of, judged))
    assert "is there an order of the operations that explains them all" in text
    undecided = "It could not be decided whether an order explains the answers: no patience."
    assert f"k3 (lock that anybody may release): {undecided}" in text
    terminal = said(capsys, of, judged)
    assert f"cross-check {SECOND_LOOK} k1" in terminal
    assert f"{YET} had ended or been released. k2 (lock that anybody may release): Both" in terminal
    assert "k4 (lock that anybody may release): no overlap" in terminal


def test_without_definitions_nothing_is_said_of_them() -> None:
    of = somebody_elses(history("1 acquire 0-1", "1 release 2-3"))
    assert "Cross-check" not in words(elsewhere(of, judgement(of)))


def test_nothing_in_the_evidence_becomes_markup(capsys: pytest.CaptureFixture[str]) -> None:
    case = not_linearizable()
    evil = tuple(
        replace(
            o,
            invoke=msgspec.structs.replace(
                o.invoke, key=ATTACK, f=ATTACK, value=f"{ATTACK}\x1b[2J"
            ),
        )
        for o in case.finding.operations
    )
    answer = Answer(False, ATTACK, ATTACK, prefix=tuple(range(len(evil))), stuck_on=0)
    model = replace(register(), name=ATTACK, meaning=ATTACK)
    proof = Proof(model, answer, dict(enumerate(evil)))
    finding = replace(case.finding, key=ATTACK, operations=evil, proof=proof)
    told = Definition(ATTACK, ATTACK, ATTACK, Verdict.VIOLATION, 0, ATTACK)
    judged = judgement(case.history, finding, definitions=(told,))
    html = elsewhere(case.history, judged)
    assert ATTACK not in html
    assert "<img" not in html
    assert "\x1b" not in html + said(capsys, case.history, judged)


def test_notes_call_a_client_as_its_log_does() -> None:
    lines = ("1 acquire 0-1 shared=true", "2 acquire 2-3", "1 release 4-5", "2 release 6-7")
    unnamed = somebody_elses(history(*lines))
    named = History.of(msgspec.structs.replace(e, process=f"w{e.process}") for e in unnamed.events)
    [found] = judge(named).of(Code.OVERLAP)
    assert note(found) == "w1 shared it with others, w2 was to have it alone."
