"""The watch over a run that goes on: as careful as the judge, and it never counts more."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import OverlapWatch, judge
from lockcheck.history import Event, EventType, Terms
from tests.checker.dsl import events, ns
from tests.simulation import Fault, FaultKind, Plan, Target, simulate

BOTH = "1 acquire 0-1 \n 2 acquire 3-4"


def fed(*lines: str, **terms: Any) -> OverlapWatch:
    watch = OverlapWatch(Terms(**terms))
    for event in events(*lines, **terms):
        watch.feed(event)
    return watch


def test_it_knows_who_holds_what() -> None:
    watch = fed("1 acquire:a 0-1 \n 2 acquire:b 2-3 \n 3 acquire:a 4-5! \n 1 acquire:c 6-7")
    assert watch.holders() == {"a": ["n1"], "b": ["n2"], "c": ["n1"]}


def test_a_hold_ends_as_the_judge_says() -> None:
    assert fed("1 acquire 0-1 \n 1 release 2-").holders() == {}
    assert fed("1 acquire 0-1 \n 1 lost 2").holders() == {}
    assert fed("1 acquire 0-1 \n 1 write 2-3? a").holders() == {}
    assert fed("1 acquire 0-1 \n 1 write 2-3! a").holders() == {"k": ["n1"]}


@pytest.mark.parametrize(
    ("line", "holders"),
    [
        ("fault odd n9,n1 5-50 effect=ends", []),
        ("fault odd n1 5-50 effect=ends", []),
        ("fault odd n1 5-50! effect=ends", ["n1"]),  # it did not take
        ("fault odd n2 5-50 effect=ends", ["n1"]),
        ("fault odd n1 5-50 effect=stops", ["n1"]),
        ("fault odd n1 5-50 effect=ends \n 7@n1 acquire 60-61", ["n1"]),  # as another process
        ("fault odd n1 0.1-0.2 effect=ends", ["n1"]),  # before
    ],
)
def test_whoever_was_ended_believes_nothing(line: str, holders: list[str]) -> None:
    assert fed("1 acquire 0-1", line).holders().get("k", []) == holders


def test_two_holders_are_shown_at_once_but_counted_when_both_are_heard_of() -> None:
    watch = fed(BOTH)
    assert watch.holders() == {"k": ["n1", "n2"]}
    assert watch.overlaps == 0  # the first one may be dead
    watch.settle(ns(1000))
    assert watch.overlaps == 0
    assert fed(BOTH, "1 release 5-6").overlaps == 0  # the second one may be
    assert fed(BOTH, "1 release 5-6", "2 release 5-6").overlaps == 1
    assert fed(BOTH, "stall n1 0-6").overlaps == 0


def test_a_client_that_watches_its_validity() -> None:
    lines = (
        "1 acquire 0-1 valid_ms=2 \n 2 acquire 3-4 valid_ms=2 \n 1 release 5-6",
        "2 release 6-7",
    )
    assert fed(*lines).overlaps == 1
    assert fed(*lines, check_validity=True).overlaps == 0
    renewed = lines[0].replace("2 acquire", "1 renew 2-2.5 valid_ms=9 \n 2 acquire")
    assert fed(renewed, lines[1], check_validity=True).overlaps == 1


def test_files_that_are_read_one_after_the_other() -> None:
    told = events(BOTH, "1 release 5-6", "2 release 6-7")
    watch = OverlapWatch(Terms())
    for event in sorted(told, key=lambda event: str(event.process), reverse=True):
        watch.feed(event)
    assert watch.overlaps == 1


def test_it_remembers_little_in_a_long_run() -> None:
    watch = OverlapWatch(Terms())
    for n in range(5_000):
        for event in events(
            f"1 acquire {n * 10}-{n * 10 + 1} \n 1 release {n * 10 + 2}-{n * 10 + 3}"
        ):
            watch.feed(event)
    assert len(watch._ended["k"]) < 1_100


def test_a_simulated_run() -> None:
    pauses = Fault(FaultKind.PAUSE, Target.HOLDER, (50, 300))
    history = simulate(Plan(seed=3, faults=(pauses,), until_ms=3_000))
    watch = OverlapWatch(history.terms)
    for event in history.events:
        watch.feed(event)
    assert watch.overlaps == sum(f.code == "overlap" for f in judge(history).findings) > 0


def test_a_semaphore_counts_each_that_is_one_too_many() -> None:
    lines = [f"{n} acquire {n}-{n}.5" for n in range(5)] + [f"{n} release 20-21" for n in range(5)]
    assert [fed(*lines, permits=n).overlaps for n in (1, 2, 3, 4, 5)] == [10, 3, 2, 1, 0]


def test_those_who_share_do_not_exclude_each_other() -> None:
    readers = "1 acquire 0-1 shared=true \n 2 acquire 3-4 shared=true"
    ends = ("1 release 8-9", "2 release 8-9", "3 release 8-9")
    assert fed(readers, *ends[:2]).overlaps == 0
    assert fed(readers, "3 acquire 5-6", *ends).overlaps == 2


def test_a_holder_that_enters_again() -> None:
    again = "1 acquire 0-1 \n 1 acquire 2-3 \n 1 release 4-5"
    other = "2 acquire 6-7 \n 1 write 8-9 a \n 2 release 10-11"
    assert fed(again, model="reentrant").holders() == {"k": ["n1"]}
    assert fed(again, other, model="reentrant").overlaps == 1
    assert fed(again).holders() == {}
    assert fed(again, other).overlaps == 0


def test_a_notice_of_its_place_does_not_end_the_wait() -> None:
    assert fed("1 acquire 0-9 \n 1 queued 2").holders() == {"k": ["n1"]}


def test_whoever_asks_again_had_given_up() -> None:
    lines = "1 acquire 0-1 \n 2 acquire 3-4 \n 2 release 8-9 \n 1 acquire 10-{answer}"
    assert fed(lines.format(answer="11")).overlaps == 0
    assert fed(lines.format(answer="11!")).overlaps == 0  # whatever it was told


def test_a_keeper_extends_and_ends_the_hold_of_its_client() -> None:
    both = "1 acquire 0-1 \n 2 acquire 10-11 \n 1 write 12-13 a \n 2 release 14-15"
    assert fed(both).overlaps == 1
    assert fed(both, "9 renew 4-5 of=1").overlaps == 1
    assert fed(both, "9 renew 4-5! of=1").overlaps == 0
    assert fed(both, "9 renew 4-5! of=1").holders() == {}
    assert fed(both, "9 renew 4-5! of=2").overlaps == 1
    assert fed(both, "9 renew 4-5? of=1").overlaps == 1
    assert fed("1 acquire 0-1 \n 9 renew 4-5 of=1").holders() == {"k": ["n1"]}


def test_a_keepers_renewal_says_nothing_of_a_later_hold() -> None:
    again = "1 acquire 0-1 \n 1 release 3-4 \n 1 acquire 6-7 \n 9 renew 2-8! of=1"
    assert fed(again).holders() == {"k": ["n1"]}


def test_a_keeper_extends_the_validity_of_its_client() -> None:
    lines = "1 acquire 0-1 valid_ms=3 \n 2 acquire 5-6 \n 1 release 7-8 \n 2 release 9-10"
    assert fed(lines, check_validity=True).overlaps == 0
    assert fed(lines, "9 renew 2-3 of=1 valid_ms=9", check_validity=True).overlaps == 1
    assert fed(lines, "9 renew 4-5 of=1 valid_ms=9", check_validity=True).overlaps == 0


def test_a_refusal_that_is_read_late_ends_the_hold_when_it_came() -> None:
    """The keeper's file is read after that of its client."""
    told = events("1 acquire 0-1 \n 1 write 8-9 a \n 9 renew 2-3! of=1")
    watch = OverlapWatch(Terms())
    for event in sorted(told, key=lambda event: str(event.process)):
        watch.feed(event)
    for event in events("2 acquire 5-6 \n 2 release 10-11"):
        watch.feed(event)
    assert watch.overlaps == 0


def test_a_keeper_under_its_clients_name() -> None:
    told = [
        Event(time, 0, kind, f, key="k")
        for time, kind, f in (
            (0, EventType.INVOKE, "acquire"),
            (1, EventType.OK, "acquire"),
            (2, EventType.INVOKE, "write"),
            (3, EventType.INVOKE, "renew"),
            (4, EventType.FAIL, "renew"),
            (5, EventType.OK, "write"),
        )
    ]
    watch = OverlapWatch(Terms())
    for event in told:
        watch.feed(event)
    assert watch.holders() == {}


def test_it_remembers_no_lives_that_are_over() -> None:
    """Each is killed while it holds the lock, and comes back under another number."""
    watch, lives = OverlapWatch(Terms()), 200
    for life in range(lives):
        at = life * 1000
        lines = [
            f"{life}@n1 acquire {at + 1}-{at + 2}",
            f"fault kill n1 {at + 3}-{at + 5} effect=ends",
            f"{10_000 + life}@n2 acquire {at + 500}-{at + 501}",
            f"{10_000 + life}@n2 release {at + 600}-{at + 601}",
        ]
        for event in events(*lines)[1:]:
            watch.feed(event)
        watch.settle(ns(at + 700))
    assert watch.overlaps == 0
    assert not watch._open
    assert not watch.holders()
    assert not watch._suspected
