"""The meaning of events: pairing, holds, promises, faults, stalls, the storage's ledger."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.errors import HistoryError
from lockcheck.history import Ending, Event, EventType, History, Hold
from tests.checker.dsl import events, history, ns

OK, FAIL, INFO, INVOKE = EventType.OK, EventType.FAIL, EventType.INFO, EventType.INVOKE


def e(time: int, process: int | str, kind: EventType, f: str, **more: object) -> Event:
    return Event(time=time, process=process, type=kind, f=f, **more)  # type: ignore[arg-type]


SENSELESS = {
    "two at once": (
        [e(1, 0, INVOKE, "read"), e(2, 0, INVOKE, "read")],
        2,
        "process 0 has an open operation already",
    ),
    "an answer to nothing": (
        [e(1, 0, INVOKE, "read"), e(2, 0, OK, "read"), e(3, 0, OK, "read")],
        3,
        "process 0 has an answer to a read that it never invoked",
    ),
    "an answer to something else": (
        [e(1, 0, INVOKE, "read"), e(2, 0, FAIL, "write")],
        2,
        "an answer to a write that it never invoked",
    ),
    "backwards": (
        [e(1, 0, INVOKE, "read"), e(5, 0, OK, "read"), e(4, 1, INVOKE, "read")],
        3,
        "before that of the line above",
    ),
    "terms of another kind": ([e(1, "run", INFO, "terms", value=[1])], 1, "invalid terms"),
    "no terms": ([e(1, "run", INFO, "terms")], 1, "invalid terms"),
    "an answer to no renewal": (
        [e(1, 0, INVOKE, "write"), e(2, 0, OK, "renew")],
        2,
        "an answer to a renew that it never invoked",
    ),
    "a stall without a length": ([e(1, 0, INFO, "stall")], 1, "without its length"),
    "a stall backwards": ([e(1, 0, INFO, "stall", value=-1)], 1, "without its length"),
    "a stall without end": ([e(1, 0, INFO, "stall", value=1e305)], 1, "without its length"),
    "a fault that was never begun": (
        [e(1, "nemesis", OK, "pause", fault=1)],
        1,
        "fault 1 was never begun",
    ),
    "a heal of nothing": ([e(1, "nemesis", INVOKE, "heal", fault=1)], 1, "was never begun"),
    "a nameless entry of the ledger": (
        [e(1, "storage", OK, "write", seq=1)],
        1,
        "without `seq` and `of`",
    ),
}


@pytest.mark.parametrize(("result", "line", "reason"), SENSELESS.values(), ids=SENSELESS)
def test_senseless_histories_name_the_line_and_the_reason(
    result: list[Event], line: int, reason: str
) -> None:
    with pytest.raises(HistoryError) as error:
        History.of(result, source="h.jsonl")
    assert error.value.line == line
    assert reason in error.value.reason
    assert str(error.value).startswith(f"h.jsonl, line {line}: ")


def test_a_holder_that_enters_again_holds_until_it_has_left_as_often() -> None:
    result = """
        1 acquire 0-1
        1 acquire 2-3
        1 release 4-5
        1 acquire 6-7
        1 release 8-9
        1 release 10-11
        1 release 12-13"""
    [hold] = history(result, model="reentrant").holds
    assert (hold.start_ns, hold.end_ns, hold.ending) == (ns(1), ns(10), Ending.RELEASED)


CRASHED_OR_NOT = {
    "it is inside, and enters again": (6, "1 acquire 2-3 \n 1 release 4-5 \n 1 release 6-7"),
    "what is left is what was entered last": (9, "1 acquire 20-21 \n 1 release 22-23"),
    "or may have been": (9, "1 acquire 20-21? \n 1 release 22-23"),
    "repeated": (9, "1 acquire 20-21 \n 1 release 22-23? \n 1 release 24-25"),
    "refused": (9, "1 acquire 20-21! \n 1 acquire 22-23 \n 1 release 24-25"),
}


@pytest.mark.parametrize(("end", "then"), CRASHED_OR_NOT.values(), ids=CRASHED_OR_NOT)
def test_a_client_that_enters_again_in_a_production_log(end: int, then: str) -> None:
    """It may have crashed after its last sign of life, at 9."""
    lines = f"1 acquire 0-1 \n {'1 write 8-9 v' if end == 9 else ''} \n {then}"
    held = history(lines, model="reentrant", partial=True, ttl_ms=100).holds[0]
    assert (held.start_ns, held.end_ns) == (ns(1), ns(end))


def test_a_client_that_is_granted_an_ordinary_lock_again_had_given_up_the_first_grant() -> None:
    """At an unknown time: certain is its last sign of life before it acquired again."""
    result = history("1 acquire 0-1 \n 1 write 2-3 x \n 1 acquire 9-10 \n 1 release 11-12")
    assert [(h.start_ns, h.end_ns, h.ending) for h in result.holds] == [
        (ns(1), ns(3), Ending.LAST_SEEN),
        (ns(10), ns(11), Ending.RELEASED),
    ]


def test_places_in_the_queue_are_kept() -> None:
    result = history("1 acquire 0-9 \n 1 queued 2 \n 2 acquire 3-4!")
    assert [(notice.process, notice.time) for notice in result.queued] == [(1, ns(2))]
    assert len(result.operations) == 2


def test_a_refused_renewal_is_a_loss() -> None:
    found = hold("1 acquire 0-1 \n 1 renew 2-3! \n 1 release 10-11")
    assert (found.ending, found.end_ns) == (Ending.LOST, ns(3))


def test_a_client_that_acquires_again_had_given_up_at_its_last_sign_of_life() -> None:
    found = hold("1 acquire 0-1 \n 1 renew 2-3 \n 1 acquire 10-11!")
    assert (found.ending, found.end_ns) == (Ending.LAST_SEEN, ns(3))


def test_of_a_lock_that_anyone_releases_a_hold_is_certain_until_anyone_does() -> None:
    lines = "1 acquire 0-1 \n 2 release 5-6 \n 1 release 10-11"
    assert hold(lines, model="mutex").end_ns == ns(5)
    assert hold(lines).end_ns == ns(10)


def test_a_foreign_release_ends_no_hold_later_than_its_own_release_does() -> None:
    lines = "1 acquire 0-1 \n 1 release 2- \n 2 release 20-21"
    assert hold(lines, model="mutex").end_ns == ns(2)


def test_nor_one_that_was_asked_for_after_it() -> None:
    lines = "2 release 0-1? \n 1 acquire 2-3 \n 1 release 10-11"
    assert hold(lines, model="mutex").end_ns == ns(10)


def test_any_client_may_have_released_it_whenever_that_was_answered() -> None:
    """Two grants one after the other, of which either may have been released by 3."""
    lines = "1 acquire 0-1 \n 3 release 5- \n 2 acquire 6-7 \n 1 release 10-11 \n 2 release 12-13"
    ends = [hold.end_ns for hold in history(lines, model="mutex").holds]
    assert ends == [ns(5), ns(12)]


def test_in_a_production_log_an_unanswered_release_is_repeated() -> None:
    lines = "1 acquire 0-1 \n 1 release 2-3? \n 2 acquire 4-5 \n 1 release 6-7 \n 2 release 8-9"
    ends = [hold.end_ns for hold in history(lines, model="mutex", partial=True).holds]
    assert ends == [ns(2), ns(8)]
    assert [hold.end_ns for hold in history(lines, model="mutex").holds] == [ns(2), ns(6)]


def test_an_empty_history_is_one() -> None:
    empty = History.of([])
    assert (empty.operations, empty.holds, empty.end_ns) == ((), (), 0)


def test_operations_are_paired_by_process() -> None:
    result = history("1 acquire 0-5 \n 2 acquire 1-3! \n 3 read 2-4? \n 4 write 3- x")
    summary = [(o.process, o.ok, o.failed, o.unknown, o.end_ns) for o in result.operations]
    assert summary == [
        (1, True, False, False, ns(5)),
        (2, False, True, False, ns(3)),
        (3, False, False, True, None),
        (4, False, False, True, None),
    ]


def hold(*lines: str, **terms: Any) -> Hold:
    return history(*lines, **terms).holds[0]


ENDINGS = {
    "released": ("1 release 7-8", Ending.RELEASED, 7),
    "a release that was refused": ("1 release 7-8!", Ending.RELEASED, 7),
    "a release without an answer": ("1 release 7-", Ending.RELEASED, 7),
    "lost": ("1 lost 6 \n 1 release 7-8", Ending.LOST, 6),
    "lost twice": ("1 lost 6 \n 1 lost 7", Ending.LOST, 6),
    "lost another": ("1 lost:other 6 \n 1 release 7-8", Ending.RELEASED, 7),
    "never heard of again": ("", Ending.LAST_SEEN, 1),
    "last heard of at its write": ("1 write 4-5 x", Ending.LAST_SEEN, 5),
    "last heard of at something it asked": ("1 write 4- x", Ending.LAST_SEEN, 4),
    "last heard of on another key": ("1 read:other 4-5", Ending.LAST_SEEN, 5),
    "a ticker is no sign of life": ("stall n1 2-50", Ending.LAST_SEEN, 1),
}


@pytest.mark.parametrize(("line", "ending", "end_ms"), ENDINGS.values(), ids=ENDINGS)
def test_how_a_hold_ends(line: str, ending: Ending, end_ms: int) -> None:
    found = hold("1 acquire 0-1", line, "2 read 90-91")
    assert (found.ending, found.end_ns) == (ending, ns(end_ms))


def test_only_a_granted_acquire_is_a_hold() -> None:
    assert history("1 acquire 0-1! \n 2 acquire 2-3? \n 3 acquire 4-").holds == ()


def test_two_keys_are_two_holds() -> None:
    result = history("1 acquire:a 0-1 \n 1 acquire:b 2-3 \n 1 release:a 4-5 \n 1 release:b 6-7")
    assert [(h.key, h.end_ns) for h in result.holds] == [("a", ns(4)), ("b", ns(6))]


@pytest.mark.parametrize(
    ("lines", "as_of_ms", "until_ms"),
    [
        ("", None, 50),
        ("1 renew 20-21", None, 70),
        ("1 renew 20-21", 21, 70),
        ("1 renew 20-21", 20, 50),
        ("1 renew 20-21!", None, 50),
        ("1 renew 20-21?", None, 50),
        ("1 renew 20-21 ttl_ms=10", None, 30),  # it asked for a shorter one
        ("1 renew 20-21 \n 1 renew 30-31", 25, 70),
        ("1 renew 20-21 \n 1 renew 30-31", None, 80),
    ],
)
def test_the_promise_of_a_lease(lines: str, as_of_ms: int | None, until_ms: int) -> None:
    found = hold("1 acquire 0-1", lines)
    as_of_ns = None if as_of_ms is None else ns(as_of_ms)
    assert found.promised_until_ns(50, as_of_ns=as_of_ns) == ns(until_ms)


def test_without_a_lease_there_is_no_promise() -> None:
    assert hold("1 acquire 0-1").promised_until_ns(None) is None
    assert hold("1 acquire 0-1 ttl_ms=7").promised_until_ns(None) == ns(7)


VALIDITY = [
    ("1 acquire 0-1 valid_ms=5", Ending.EXPIRED, 6),
    ("1 acquire 0-1 valid_ms=9", Ending.RELEASED, 10),
    ("1 acquire 0-1 valid_ms=-5", Ending.EXPIRED, 1),
    ("1 acquire 0-1 valid_ms=-1e308", Ending.EXPIRED, 1),
    ("1 acquire 0-1 valid_ms=1e308", Ending.RELEASED, 10),
    ("1 acquire 0-1 valid_ms=5 ttl_ms=4", Ending.EXPIRED, 4),  # it counts from before
    ("1 acquire 0-1", Ending.RELEASED, 10),
    ("1 acquire 0-1 valid_ms=5 \n 1 renew 2-3 valid_ms=5", Ending.EXPIRED, 8),
    ("1 acquire 0-1 valid_ms=5 \n 1 renew 6-7 valid_ms=5", Ending.EXPIRED, 6),  # too late
    ("1 acquire 0-1 valid_ms=5 \n 1 renew 2-3", Ending.EXPIRED, 6),
]


@pytest.mark.parametrize(("lines", "ending", "end_ms"), VALIDITY)
def test_a_client_that_honours_its_validity(lines: str, ending: Ending, end_ms: int) -> None:
    found = hold(lines, "1 release 10-11", check_validity=True)
    assert (found.ending, found.end_ns) == (ending, ns(end_ms))
    assert found.release
    assert hold(lines, "1 release 10-11").ending is Ending.RELEASED


def test_faults_from_beginning_to_end() -> None:
    result = history("fault pause n1 10-50 \n fault pause n2 20-! \n fault kill r1 30-")
    first, second, third = result.faults
    assert (first.name, first.nodes, first.start_ns) == ("pause", ("n1",), ns(10))
    assert (first.proven_ns, first.healed_ns, first.proof) == (ns(10), ns(50), "seen")
    assert (second.proven_ns, second.healed_ns) == (None, None)
    assert second.why_unproven == "it would not stop"
    assert third.healed_ns is None
    assert first.touches(ns(50), ns(60))
    assert not first.touches(ns(51), ns(60))
    assert first.touches(ns(0), ns(10))
    assert not first.touches(ns(0), ns(9))
    assert third.touches(ns(999), ns(999))


def test_other_events_of_the_nemesis_are_no_faults() -> None:
    assert History.of([e(1, "nemesis", INFO, "hello")]).faults == ()


def test_a_stall_reaches_back() -> None:
    (stall,) = history("stall n1 10-35").stalls
    assert (stall.node, stall.start_ns, stall.end_ns) == ("n1", ns(10), ns(35))


def test_the_storages_ledger() -> None:
    result = history(
        "storage write 1 x seq=1 base=w token=3", "storage write! 2 y seq=2 error=fenced"
    )
    first, second = result.ledger
    assert (first.accepted, first.value, first.base, first.token) == (True, "x", "w", 3)
    assert (second.accepted, second.process, second.reason) == (False, 2, "fenced")


def test_terms_come_first_and_have_defaults() -> None:
    assert history(guard="fence", ttl_ms=7, faults=("pause",)).terms.faults == ("pause",)
    assert History.of([]).terms.guard == "none"
    assert events()[0].f == "terms"


# --- renewals by a keeper ------------------------------------------------------------------------


def kept(*lines: str, **terms: Any) -> Hold:
    """The hold of process 1, whose keeper is process 9."""
    (found,) = (h for h in history("1 acquire 0-1", *lines, **terms).holds if h.process == 1)
    return found


def test_a_keeper_extends_the_hold_of_its_client() -> None:
    found = kept("1 write 2-30 a \n 9 renew 20-21 of=1 \n 1 release 60-61")
    assert [renewal.process for renewal in found.renewals] == [9]
    assert found.promised_until_ns(50) == ns(70)
    assert (found.ending, found.end_ns) == (Ending.RELEASED, ns(60))


def test_a_keeper_never_holds_and_is_no_sign_of_life_of_its_client() -> None:
    result = history("1 acquire 0-1 \n 9 renew 20-21 of=1 \n 9 renew 40-41 of=1")
    assert [(h.process, h.end_ns, h.ending) for h in result.holds] == [(1, ns(1), Ending.LAST_SEEN)]


@pytest.mark.parametrize(
    ("renewal", "end_ms", "ending"),
    [
        ("9 renew 20-21! of=1", 21, Ending.LOST),
        ("9 renew 20-21? of=1", 60, Ending.RELEASED),
        ("9 renew 20- of=1", 60, Ending.RELEASED),
        ("9 renew 20-21! of=2", 60, Ending.RELEASED),  # of another client's hold
        ("9 renew:other 20-21! of=1", 60, Ending.RELEASED),
        ("9 renew 20-21!", 60, Ending.RELEASED),  # of no client's hold
    ],
)
def test_what_a_keepers_refused_renewal_ends(renewal: str, end_ms: int, ending: Ending) -> None:
    found = kept(renewal, "1 release 60-61")
    assert (found.end_ns, found.ending) == (ns(end_ms), ending)


@pytest.mark.parametrize("answer", ["20-45", "20-45!"])
def test_a_renewal_proves_nothing_about_a_hold_that_began_after_it(answer: str) -> None:
    result = history(
        "1 acquire 0-1 \n 1 release 30-31 \n 1 acquire 40-41 \n 1 release 60-61",
        f"9 renew {answer} of=1",
    )
    first, second = result.holds
    assert (first.end_ns, second.end_ns) == (ns(30), ns(60))
    assert second.renewals == ()
    assert second.promised_until_ns(50) == ns(90)


@pytest.mark.parametrize(
    ("renewals", "until_ms"),
    [
        ("9 renew 10-30 of=1 \n 1 renew 20-21", 70),
        ("9 renew 10-20 of=1 \n 1 renew 20-21", 70),
        ("9 renew 10-30 of=1 ttl_ms=20 \n 1 renew 20-21", 40),  # it may have been the last
        ("9 renew 10-19 of=1 ttl_ms=20 \n 1 renew 20-21", 70),  # certainly the first
        ("9 renew 10-30 of=1 ttl_ms=90 \n 1 renew 20-21", 70),
        ("9 renew 10-30? of=1 \n 1 renew 5-6", 55),
    ],
)
def test_renewals_that_are_under_way_together(renewals: str, until_ms: int) -> None:
    assert kept(renewals, "1 release 100-101").promised_until_ns(50) == ns(until_ms)


@pytest.mark.parametrize(
    ("renewal", "end_ms"),
    [
        ("9 renew 2-3 of=1 valid_ms=5", 8),
        ("9 renew 6-7 of=1 valid_ms=5", 6),  # too late
        ("9 renew 2-3 of=2 valid_ms=5", 6),
        ("9 renew 2-3 valid_ms=5", 6),
    ],
)
def test_a_keeper_extends_the_validity_that_a_client_honours(renewal: str, end_ms: int) -> None:
    lines = ("1 acquire 0-1 valid_ms=5 \n 1 release 10-11", renewal)
    (found,) = history(*lines, check_validity=True).holds
    assert (found.end_ns, found.ending) == (ns(end_ms), Ending.EXPIRED)


# --- a keeper that was logged under its client's name ------------------------------------------


GRANTED = "0 acquire 0-1"


@pytest.mark.parametrize(
    "lines",
    [
        "0 write 2-5 v \n 0 renew 3-4",
        "0 write 2-4 v \n 0 renew 3-5",
        "0 renew 2-4 \n 0 write 3-5 v",
        "0 renew 2-5 \n 0 write 3-4 v",
    ],
)
def test_a_renewal_under_way_with_something_else_is_a_keepers(lines: str) -> None:
    found = history(GRANTED, lines)
    own, keepers = (0, "write"), ("0/keeper", "renew")
    assert [(o.process, o.f) for o in found.operations] == [
        (0, "acquire"),
        *((own, keepers) if lines.startswith("0 write") else (keepers, own)),
    ]
    assert all(operation.ok for operation in found.operations)
    (hold,) = found.holds
    assert [renewal.owner for renewal in hold.renewals] == [0]
    again = History.of(found.events)
    assert (again.operations, again.holds) == (found.operations, found.holds)


def test_a_refused_one_ends_the_hold_while_its_client_writes() -> None:
    found = hold(GRANTED, "0 write 2-5 v \n 0 renew 3-4!")
    assert (found.end_ns, found.ending) == (ns(4), Ending.LOST)


def test_renewals_one_after_the_other_are_the_clients_own() -> None:
    result = history(GRANTED, "0 renew 2-3 \n 0 release 3-")
    assert {operation.process for operation in result.operations} == {0}


@pytest.mark.parametrize(
    "lines",
    [
        "0 write 2- v \n 0 read 3-",
        "0 renew 2- \n 0 renew 3-",
        "0 write 2- v \n 0 renew 3- \n 0 renew 4-",
        "0 write 2- v \n 0 renew 3- \n 0 release 4-",
    ],
)
def test_what_really_overlaps_is_refused(lines: str) -> None:
    with pytest.raises(HistoryError, match=r"process 0(/keeper)? has an open operation already"):
        history(GRANTED, lines)


@pytest.mark.parametrize("release", ["30-40", "30-40!", "30-40?", "30-"])
@pytest.mark.parametrize(
    ("renewal", "renewals"),
    [("20-35", 1), ("20-35!", 1), ("30-35", 0), ("31-35!", 0), ("20-45", 0), ("31-45!", 0)],
)
def test_answers_to_a_keeper_while_its_client_releases(
    release: str, renewal: str, renewals: int
) -> None:
    (found,) = history(f"1 acquire 0-1 \n 1 release {release} \n 9 renew {renewal} of=1").holds
    assert (found.end_ns, found.ending) == (ns(30), Ending.RELEASED)
    if release != "30-":  # otherwise the end is unknown
        assert len(found.renewals) == renewals


def test_a_reentrant_lock_is_lost_whichever_of_its_releases_is_under_way() -> None:
    lines = "1 acquire 0-1 \n 1 acquire 2-3 \n 1 release 30-40 \n 9 renew 20-35! of=1"
    (found,) = history(lines, model="reentrant").holds
    assert (found.end_ns, found.ending) == (ns(35), Ending.LOST)


def test_a_refusal_is_no_sign_of_life_of_a_client_that_ended() -> None:
    lines = "1 acquire 0-1 \n 1 write 5-6 a \n 9 renew 20-21! of=1"
    (found,) = history(lines).holds
    assert (found.end_ns, found.ending) == (ns(6), Ending.LAST_SEEN)
    (found,) = history(lines, "1 write 30-31 b").holds
    assert (found.end_ns, found.ending) == (ns(21), Ending.LOST)


@pytest.mark.parametrize(
    ("terms", "end_ms"),
    [({}, 10), ({"fair": True}, 25), ({"session": True}, 25), ({"session": True, "ttl_ms": 3}, 23)],
)
def test_a_validity_after_a_wait_may_count_from_the_answer(
    terms: dict[str, Any], end_ms: int
) -> None:
    lines = "1 acquire 0-20 valid_ms=5 \n 1 release 40-41"
    (found,) = history(lines, check_validity=True, **({"ttl_ms": 10} | terms)).holds
    assert (found.end_ns, found.ending) == (ns(end_ms), Ending.EXPIRED)
    renewed = "1 renew 21-38 valid_ms=9"  # which does not wait
    result = history(lines, renewed, check_validity=True, **({"ttl_ms": 10} | terms))
    assert result.holds[0].end_ns == ns(end_ms)
