"""Judges go by what a fault does to its nodes, and not by its name."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from lockcheck.checker import Case, Code, Culprit, Verdict, judge, judge_scan
from lockcheck.checker.doubt import DoubtCode
from lockcheck.checker.evidence.stalls import host_stepped_ns
from lockcheck.checker.judges.deadlock import find as deadlocks
from lockcheck.checker.judges.silent_loss import find as silent_losses
from lockcheck.checker.judges.unfair import find as unfair
from lockcheck.checker.whole_run.soundness import doubts
from lockcheck.history import History, Terms, read_history
from lockcheck.history.event import encode_event, terms_event
from lockcheck.history.scan import scan
from lockcheck.native import core
from tests.checker.dsl import codes, events, history, ns
from tests.checker.evidence.test_blame import LET_IN_EARLY, OUTLIVED, blame
from tests.checker.test_judge import turns

HISTORIES = Path(__file__).with_name("histories")
STANDING = (
    "stops",
    "ends",
    "starves",
    "",
)  # nobody knows what the last one did: it may not have run
RUNNING = ("cuts", "skews", "slows")


def fault(effect: str, nodes: str, span: str, more: str = "") -> str:
    """By a name that says nothing."""
    return f"fault odd {nodes} {span} {f'effect={effect}' if effect else ''} {more}"


# --- who ran -------------------------------------------------------------------------------------


LOST = """
    1 acquire 0-1
    2 acquire 110-111
    1 read 120-121 = x
    1 release 400-900
    2 release 160-161"""


@pytest.mark.parametrize("nodes", ["n1", "n9,n1", "n1,n2"])
@pytest.mark.parametrize(
    ("effect", "told"), [*((e, 0) for e in STANDING), *((e, 1) for e in RUNNING)]
)
def test_whoever_ran_could_have_been_told(effect: str, nodes: str, told: int) -> None:
    lines = history(LOST, fault(effect, nodes, "100-350"), ttl_ms=100, backend="redis")
    assert len(list(silent_losses(Case(lines)))) == told


@pytest.mark.parametrize("effect", [*STANDING, *RUNNING])
def test_somebody_elses_fault_is_no_excuse(effect: str) -> None:
    lines = history(LOST, fault(effect, "n2,n3", "100-350"), ttl_ms=100, backend="redis")
    assert len(list(silent_losses(Case(lines)))) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lost-unnoticed-no-fault.jsonl", None),
        ("lost-unnoticed-cut-off.jsonl", "partition"),
    ],
)
def test_a_holder_that_was_never_told_with_and_without_a_fault(
    name: str, expected: str | None
) -> None:
    judgement = judge(read_history(HISTORIES / name))
    assert judgement.verdict is Verdict.VIOLATION
    assert set(codes(judgement)) == {"overlap", "silent-loss"}
    assert judgement.doubts == ()
    (finding,) = judgement.of(Code.SILENT_LOSS)
    assert [hold.node for hold in finding.holds] == ["c1", "c2"]
    for found in judgement.findings:
        assert found.blame.who is Culprit.HOLDER
        assert (found.blame.fault and found.blame.fault.name) == expected


# --- blame ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "who"),
    [*((e, Culprit.HOLDER) for e in STANDING), *((e, Culprit.MACHINE) for e in RUNNING)],
)
def test_a_stall_is_the_faults_only_where_that_can_stop_a_client(effect: str, who: Culprit) -> None:
    stall = "stall n1 60-125"
    assert blame(OUTLIVED, fault(effect, "n1", "2-3"), stall).who is who
    assert blame(OUTLIVED, fault(effect, "n3,n1", "2-3"), stall).who is who
    assert blame(OUTLIVED, fault(effect, "n3,n2", "2-3"), stall).who is Culprit.MACHINE


@pytest.mark.parametrize("effect", [*STANDING, *RUNNING])
def test_a_holder_outlives_its_lease_under_any_fault_on_its_node(effect: str) -> None:
    found = blame(OUTLIVED, fault(effect, "n3,n1", "5-105")).fault
    assert found
    assert found.where == "n3, n1"
    assert blame(OUTLIVED, fault(effect, "n3,n2", "5-105")).fault is None


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ((), "r1"),  # it struck the other end of a link
        (("cuts n1 5-20",), "n1"),  # who was struck comes first
        (("cuts r2 5-105 links=r2>n1",), "r1"),
        (("cuts r2 5-119 links=r2>n3",), "r1"),
    ],
)
def test_a_cut_has_two_ends(more: tuple[str, ...], expected: str) -> None:
    far = fault("cuts", "r1", "5-110", "links=r1>n1,n1>r1")
    found = blame(OUTLIVED, far, *(fault(*text.split(maxsplit=3)) for text in more)).fault
    assert found
    assert found.where == expected


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (("slows r1 5-49", "skews r1 40-49"), "skews"),
        (("slows r1 5-49", "cuts r1 40-49"), "cuts"),
        (("slows r1 5-49", "ends n1 5-49"), "slows"),  # the servers' come first
        (("slows n1 5-49", "stops n1 40-49"), "stops"),
        (("cuts n1,n2 5-49", "cuts n1,r1 40-49"), "cuts n1, r1"),
        (("skews n1 5-49", "cuts - 40-49"), "cuts"),  # of the network as a whole
        (("ends r1 4-30", "stops r1 38-49"), "ends"),  # the longest
        (("ends r1 0-20", "stops r1 12-40"), "stops"),
        (("ends r1 4-40", "stops r1 45-60"), "stops"),  # it went on when the other one was let in
        (("ends r1 4-40", "stops n1 45-60"), "ends"),  # but it was a client's
    ],
)
def test_which_fault_explains_the_service(faults: tuple[str, ...], expected: str) -> None:
    found = blame(LET_IN_EARLY, *(fault(*text.split()) for text in faults)).fault
    assert found
    assert found.effect
    assert f"{found.effect.value} {found.where}".startswith(expected)


def test_what_was_healed_while_the_holder_waited_is_not_the_first_to_explain_the_service() -> None:
    before, then = fault("skews", "r1", "5-35", ""), fault("skews", "r2", "50-54", "")
    found = blame(
        "1 acquire 0-40 \n 2 acquire 45-60 \n 1 release 70-71 \n 2 release 80-81", before, then
    )
    assert found.fault
    assert found.fault.where == "r2"


@pytest.mark.parametrize(
    ("effect", "who"),
    [
        ("skews", Culprit.SERVICE),  # it was ours: the host's clock did not step
        *((e, Culprit.MACHINE) for e in (*STANDING, "cuts", "slows")),
    ],
)
def test_only_a_skewed_clock_makes_a_step_ours(effect: str, who: Culprit) -> None:
    told = history(fault(effect, "n9,n2", "10-40"), "clock-step n2 30 500")
    stepped_ns = host_stepped_ns(told.clock_steps, told.faults, ns(1), ns(50))
    assert stepped_ns == (0 if effect == "skews" else ns(501))
    step = "clock-step n2 30 500"
    assert blame(fault(effect, "n9,n2", "10-40"), step, LET_IN_EARLY).who is who


# --- who waits -----------------------------------------------------------------------------------

CIRCLE = """
    1 acquire:a 0-1
    2 acquire:b 0-1
    1 acquire:b 10-{one}
    2 acquire:a 20-2000!
    9 read 5000-5001"""


@pytest.mark.parametrize(
    ("effect", "told"), [*((e, 0) for e in STANDING), *((e, 1) for e in RUNNING)]
)
def test_who_was_never_answered_waits_unless_it_may_have_died(effect: str, told: int) -> None:
    lines = CIRCLE.format(one=""), fault(effect, "n9,n1", "50-60")
    assert len(list(deadlocks(Case(history(*lines))))) == told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        *((fault(effect, "n1,n9", "100-1200"), 0) for effect in (*STANDING, *RUNNING)),
        (fault("cuts", "r1,r2", "100-1200"), 0),  # the other side of it may be theirs
        (fault("stops", "r1,r2", "100-1200"), 1),
        (fault("cuts", "n1", "100-200"), 1),  # long enough without that
    ],
)
def test_what_hangs_because_it_does_not_arrive_is_no_waiting(line: str, told: int) -> None:
    lines = CIRCLE.format(one="2000!"), line
    assert len(list(deadlocks(Case(history(*lines))))) == told


PASSED = """
    9 acquire 0-1
    1 acquire 2-70
    1 queued 5
    2 acquire 10-30
    9 release 20-21
    2 release 860-861
    1 release 900-901"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", 1),
        *((fault(effect, "n9,n1", "30-40"), 0) for effect in (*STANDING, *RUNNING)),
        *((fault(effect, "n9,n2", "30-40"), 1) for effect in (*STANDING, "skews")),
        (fault("cuts", "r1,r2", "30-40"), 0),
        (fault("slows", "n2", "30-40"), 1),
        (fault("slows", "r1,n2", "30-40"), 0),  # what a slow server sends is late for all
    ],
)
def test_who_was_out_of_touch_may_have_lost_its_place(line: str, told: int) -> None:
    assert len(list(unfair(Case(history(PASSED, line, fair=True))))) == told


# --- what was asked for --------------------------------------------------------------------------

CUT = "cut:holder,for=2s"
WANTED = "2 acquire 36-36.5!"


def missed(*lines: str, asked: str = CUT, at_holders: tuple[str, ...] = (CUT,)) -> list[DoubtCode]:
    told = history(
        turns(12), *lines, faults=(asked,), at_holders=at_holders, backend="redis", clients=3
    )
    found = list(doubts(Case(told)))
    assert all(doubt.asked == asked for doubt in found)
    return [doubt.code for doubt in found]


NEVER = DoubtCode.FAULT_NOT_INJECTED
NOT_HELD = DoubtCode.NO_HOLDER_STRUCK


@pytest.mark.parametrize(
    ("line", "said"),
    [
        # client 1 holds it from 31 to 35 ms
        (f"fault cut n1 31-39 asked={CUT} since=32 proven=38", []),  # proven after the release
        (f"fault cut n1 31-39 asked={CUT} since=35 proven=38", []),
        (f"fault cut n1 31-39 asked={CUT} since=35.1 proven=38", [NOT_HELD]),
        (f"fault cut n1 31-39 asked={CUT} proven=38", [NOT_HELD]),
        (f"fault cut n1 31-39 asked={CUT} since=3 proven=38", []),  # not before it was begun
        (f"fault cut n1 31-39 asked={CUT} since=90 proven=34", []),  # nor after its proof
        (f"fault cut n9,n1 31-39 asked={CUT} since=32 proven=38", []),
        (f"fault cut n9,n2 31-39 asked={CUT} since=32 proven=38", [NOT_HELD]),
        ("fault cut n1 31-39 asked=cut:holder since=32 proven=38", [NEVER]),  # another one
        ("fault cut n1 31-39 since=32 proven=38", []),  # does not say
        ("fault kill n1 31-39 since=32 proven=38", [NEVER]),
    ],
)
def test_whether_a_fault_that_is_aimed_at_holders_struck_one(
    line: str, said: list[DoubtCode]
) -> None:
    assert missed(line, WANTED) == said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("33-33.9", [NOT_HELD]),
        ("33.9-39.5", []),  # it waited for it
        ("34-39.5", []),
        ("39-39.5", []),
        ("39.1-39.5", [NOT_HELD]),
    ],
)
def test_somebody_must_want_the_lock_while_it_is_in_effect(
    asked: str, said: list[DoubtCode]
) -> None:
    line = f"fault cut n1 31-39 asked={CUT} since=34 proven=38"
    assert missed(line, f"2 acquire {asked}!") == said


def test_only_what_is_aimed_at_holders_has_to_strike_one() -> None:
    elsewhere = f"fault cut n1 36-50 asked={CUT}"
    assert missed(elsewhere, WANTED, at_holders=("kill:holder",)) == []
    assert missed(elsewhere, WANTED, asked="cut:holder", at_holders=()) == [NEVER]
    assert missed("fault cut n1 36-50", WANTED, asked="cut:holder", at_holders=()) == [NOT_HELD]


ENDED = """
    7 acquire 200-201
    7 read 202-203 = x
    {more}
    2 acquire 225-226!
    fault odd n7 {at}-250 effect={effect} asked=odd:holder"""


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, []),  # its last sign of life came before
        ({"effect": "stops"}, [NOT_HELD]),
        ({"at": "199"}, [NOT_HELD]),
        ({"more": "7 release 210-211"}, [NOT_HELD]),
        ({"more": "8@n7 read 210-211 = x"}, [NOT_HELD]),  # another process of it since
        ({"more": "8@n7 read 220-221 = x"}, [NOT_HELD]),
        ({"more": "8@n8 read 210-211 = x"}, []),
        ({"more": "7 write 215- x"}, []),  # in the middle of it
        ({"more": "8@n7 read 260-261 = x"}, []),  # started again
    ],
)
def test_who_was_ended_while_it_held_the_lock(
    values: dict[str, str], said: list[DoubtCode]
) -> None:
    lines = ENDED.format(**{"more": "", "at": "220", "effect": "ends"} | values)
    assert missed(lines, asked="odd:holder", at_holders=("odd:holder",)) == said


# --- nothing to judge ----------------------------------------------------------------------------

NOTHING_TO_JUDGE = {DoubtCode.NO_OPERATIONS, DoubtCode.NO_ANSWERS}

NOTHING = {
    "nothing at all": "",
    "only faults": "fault pause n1 10-20",
    "only notices": "1 lost 5 \n stall n1 10-20",
    "only the storage": "storage write 1 b seq=2",
    "never answered": "1 read 0- \n 2 write 1- 7 \n 3 write 1- 8",
    "nobody knows": "1 add 0-1? 3 \n 2 write 1-2? 7 \n 3 write 1-2? 8",
}


@pytest.mark.parametrize("lines", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("terms", [{}, {"backend": "redis", "clients": 2}, {"model": "register"}])
def test_where_no_client_did_anything_nobody_can_tell(lines: str, terms: dict[str, Any]) -> None:
    told = history(lines, **terms)
    judgement = judge(told)
    assert judgement.verdict is Verdict.UNKNOWN
    assert NOTHING_TO_JUDGE & {doubt.code for doubt in judgement.doubts}


@pytest.mark.skipif(core() is None, reason="the compiled reader was not built")
@pytest.mark.parametrize("lines", NOTHING.values(), ids=NOTHING)
def test_and_from_columns(lines: str) -> None:
    whole = [terms_event(Terms()), *events(lines)[1:]]
    text = b"".join(encode_event(event) + b"\n" for event in whole)
    read = scan(lambda: io.BytesIO(text), "lines")
    assert read
    judgement = judge_scan(read)
    assert judgement.verdict is Verdict.UNKNOWN
    assert NOTHING_TO_JUDGE & {doubt.code for doubt in judgement.doubts}


def test_one_that_was_answered_is_something() -> None:
    assert judge(History.of(events("1 read 0-1 = 7 \n 2 write 1- 7"))).verdict is Verdict.OK
