"""What makes a run `unknown` although nothing was found: how it is told, and where it begins."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from lockcheck.checker import Case
from lockcheck.checker.whole_run.soundness import ONE_CLIENT, Amounts, doubts, too_few
from lockcheck.history import Terms
from tests.checker.dsl import history, judged
from tests.checker.judges.test_stuck import refusals
from tests.checker.test_judge import turns

ENOUGH = Amounts(
    operations=50,
    answered=50,
    judged=50,
    asked=10,
    granted=10,
    holders=2,
    shared_keys=1,
    accepted=10,
)
OURS = Terms(backend="redis", stores=True, clients=2)
ELSEWHERE = Terms()


@pytest.mark.parametrize(
    ("terms", "amounts", "told"),
    [
        (OURS, {}, ""),
        (OURS, {"granted": 9}, "the lock was granted 9 times, not 10"),
        (OURS, {"asked": 0, "granted": 0}, "the lock was granted 0 times, not 10"),
        (OURS, {"holders": 1}, "1 of the clients held the lock"),
        (OURS, {"shared_keys": 0}, "no lock was ever held by two different clients"),
        (OURS, {"accepted": 9}, "the storage accepted a write 9 times, not 10"),
        (OURS, {"accepted": 1}, "the storage accepted a write once, not 10"),
        (msgspec.structs.replace(OURS, stores=False), {"accepted": 0}, ""),
        (msgspec.structs.replace(OURS, clients=1), {"holders": 1, "granted": 3}, ONE_CLIENT),
        (ELSEWHERE, {"granted": 2, "accepted": 0}, ""),
        (ELSEWHERE, {"granted": 1}, "the lock was granted once, not 2"),
        (ELSEWHERE, {"holders": 1}, ""),
        (msgspec.structs.replace(ELSEWHERE, clients=3), {"holders": 1}, ""),
        (msgspec.structs.replace(ELSEWHERE, stores=True), {"accepted": 0}, ""),
        (ELSEWHERE, {"asked": 0, "granted": 0, "shared_keys": 0, "judged": 2}, ""),
        (ELSEWHERE, {"asked": 0, "judged": 1}, "that a judge knows to tell: 1, of 50"),
        (ELSEWHERE, {"asked": 0, "judged": 1, "operations": 1}, "that a judge knows to tell: 1"),
        (ELSEWHERE, {"asked": 0, "answered": 0}, "so there is nothing to judge"),
        (
            ELSEWHERE,
            {"operations": 0},
            "the history has no operations of clients, so there is nothing to judge",
        ),
        (
            OURS,
            {"operations": 0},
            "the history has no operations of clients, so there is nothing to judge",
        ),
        (msgspec.structs.replace(OURS, fewest=4), {"granted": 4, "accepted": 4}, ""),
        (msgspec.structs.replace(OURS, fewest=4), {"granted": 3}, "granted 3 times, not 4"),
        (msgspec.structs.replace(OURS, fewest=4), {"accepted": 3}, "a write 3 times, not 4"),
        (msgspec.structs.replace(OURS, fewest=20), {"accepted": 20}, "granted 10 times, not 20"),
        (msgspec.structs.replace(ELSEWHERE, fewest=11), {}, "granted 10 times, not 11"),
    ],
)
def test_too_few_of_something(terms: Terms, amounts: dict[str, int], told: str) -> None:
    said = list(too_few(terms, replace(ENOUGH, **amounts)))
    assert [one[-len(told) :] for one in said] == ([told] if told else [])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("1 write 0-1 7", ["too few operations that a judge knows to tell: 1"]),
        ("1 write 0-1 7 \n 2 read 2-3 = 7", []),
        ("1 write 0-1 7 \n 2 sing 2-3", ["too few operations that a judge knows to tell: 1, of 2"]),
    ],
)
def test_what_is_not_about_a_lock(lines: str, said: list[str]) -> None:
    assert list(doubts(Case(history(lines)))) == said


def aimed(*lines: str) -> list[str]:
    told = history(turns(12), *lines, faults=("pause:holder",), backend="redis", clients=3)
    return list(doubts(Case(told)))


@pytest.mark.parametrize(
    ("fault", "wanted", "struck"),
    [
        ("fault pause n1 31-33", "2 acquire 32-32.5!", True),  # at the moment of the grant
        ("fault pause n1 35-36", "2 acquire 35.5-35.6!", True),  # in that of the release
        ("fault pause n1 30.9-33", "2 acquire 32-32.5!", False),
        ("fault pause n1 35.1-36", "2 acquire 35.5-35.6!", False),
        ("fault pause n1 32-33", "2 acquire 32-32.5!", True),
        ("fault pause n1 32-33", "2 acquire 33-33.5!", True),
        ("fault pause n1 32-33", "2 acquire 33.1-33.5!", False),  # it ran again
        ("fault pause n1 32-33", "2 acquire 31.9-33.5!", False),  # asked before
        ("fault pause n1 32-33", "2 acquire:other 32-32.5!", False),
        ("fault pause n1 32-33", "1 acquire 32-32.5!", False),
        ("fault pause n1 32-33", "2 read 32-32.5", False),
        ("fault kill n1 32-33", "2 acquire 32-32.5!", False),
    ],
)
def test_a_fault_that_is_aimed_at_holders(fault: str, wanted: str, *, struck: bool) -> None:
    missed = any(
        "never struck" in doubt or "never injected" in doubt for doubt in aimed(fault, wanted)
    )
    assert missed != struck


def test_the_keeper_of_a_holder_that_is_ended_at_work_renews_until_then() -> None:
    """The client's own last sign of life may lie far back."""
    held, wanted = "1 acquire 1000-1001", "2 acquire 1400-1401!"
    ended = "fault kill n1 1300-1500 asked=pause:holder"
    renewed = "8@n1 renew 1200-1201 of=1"
    assert aimed(held, ended, wanted) == []
    assert aimed(held, renewed, ended, wanted) == []
    assert aimed(held, "9@n1 acquire 1200-1201!", ended, wanted) != []  # another life


def test_another_fault_that_struck_a_holder_is_not_the_one() -> None:
    (doubt,) = aimed("fault kill n1 32-33", "2 acquire 32-32.5!", "fault pause n1 900-901")
    assert "the fault pause:holder never struck a client" in doubt


def test_one_that_is_never_healed_strikes_until_the_end() -> None:
    (doubt,) = aimed("fault pause n1 32-", "2 acquire 110.1-110.2!")
    assert doubt == "the fault pause on n1 at 0.032 s was never seen to be healed"


WRITTEN = turns(12) + "\n 1 acquire 200-201 \n 1 write 202-203 a base=null seq=7"


@pytest.mark.parametrize(
    ("lines", "doubt"),
    [
        ("storage write 2 b seq=9", "the storage served write 9 of process 2, which never sent it"),
        (
            "storage write 2 b seq=9",
            "the storage does not remember write 7 of n1 to 'k', which it had acknowledged",
        ),
        (
            "storage write! 1 a seq=7",
            "n1 and the storage contradict each other on write 7 of n1 to 'k': who is right",
        ),
    ],
)
def test_what_the_ledger_says(lines: str, doubt: str) -> None:
    assert any(said.startswith(doubt) for said in doubts(Case(history(WRITTEN, lines))))


def test_a_ledger_is_missed_only_where_there_is_a_storage() -> None:
    silent = "the storage's ledger is missing, so the fate of unanswered writes is unknown"
    assert silent in list(doubts(Case(history(WRITTEN, workload="register"))))
    assert silent not in list(doubts(Case(history(WRITTEN, workload="mutex"))))
    for other in ("202-203! a base=null seq=7", "202-203 a base=null", "202-203? a seq=7"):
        told = WRITTEN.replace("202-203 a base=null seq=7", other)
        assert silent not in list(doubts(Case(history(told, workload="register"))))


def test_what_the_machine_did_is_told_with_its_cure() -> None:
    lines = "1 acquire 0-1 \n 2 acquire 110-111 \n 1 release 130-131 \n 2 release 140-141"
    (doubt, *_) = judged("stall n1 60-125", lines, ttl_ms=100).doubts
    assert doubt == (
        "the machine stalled for 0.065 s on n1 while it held 'k', and that explains the overlap:"
        " run again on a quieter machine or with a longer TTL"
    )
    early = "1 acquire 0-1 \n 2 acquire 50-51 \n 1 release 60-61 \n 2 release 70-71"
    (doubt, *_) = judged("clock-step n2 30 500", early, ttl_ms=100).doubts
    assert doubt == (
        "the host's clock jumped while n1 held 'k', and that explains the overlap:"
        " run again while nothing sets the clock"
    )
    told = judged(refusals(until=2100), "stall n2 0-2000", "1 acquire:j 0-1", ttl_ms=100).doubts
    assert (
        "the machine stalled for 2.000 s, and that explains the stuck of 'k': run again on a"
        " quieter machine"
    ) in told


def test_what_the_machine_did_behind_a_guard_is_no_doubt() -> None:
    lines = "1 acquire 0-1 \n 2 acquire 110-111 \n 1 release 130-131 \n 2 release 140-141"
    judgement = judged("stall n1 60-125", lines, ttl_ms=100, guard="cas")
    assert judgement.findings
    assert judgement.doubts == ()
