"""What makes a run `unknown` although nothing was found: how it is told, and where it begins."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from lockcheck.checker import Case
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.whole_run.soundness import Amounts, doubts, too_few
from lockcheck.history import Terms
from tests.checker.dsl import history, judged, ns
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


def few(code: DoubtCode, number: int, of: int = 10) -> Doubt:
    return Doubt(code, number=number, of=of)


@pytest.mark.parametrize(
    ("terms", "amounts", "doubt"),
    [
        (OURS, {}, None),
        (OURS, {"granted": 9}, few(DoubtCode.FEW_GRANTS, 9)),
        (OURS, {"asked": 0, "granted": 0}, few(DoubtCode.FEW_GRANTS, 0)),
        (OURS, {"holders": 1}, few(DoubtCode.FEW_HOLDERS, 1, of=0)),
        (OURS, {"shared_keys": 0}, Doubt(DoubtCode.NO_KEY_SHARED)),
        (OURS, {"accepted": 9}, few(DoubtCode.FEW_WRITES, 9)),
        (OURS, {"accepted": 1}, few(DoubtCode.FEW_WRITES, 1)),
        (msgspec.structs.replace(OURS, stores=False), {"accepted": 0}, None),
        (
            msgspec.structs.replace(OURS, clients=1),
            {"holders": 1, "granted": 3},
            Doubt(DoubtCode.ONE_CLIENT),
        ),
        (ELSEWHERE, {"granted": 2, "accepted": 0}, None),
        (ELSEWHERE, {"granted": 1}, few(DoubtCode.FEW_GRANTS, 1, of=2)),
        (ELSEWHERE, {"holders": 1}, None),
        (msgspec.structs.replace(ELSEWHERE, clients=3), {"holders": 1}, None),
        (msgspec.structs.replace(ELSEWHERE, stores=True), {"accepted": 0}, None),
        (ELSEWHERE, {"asked": 0, "granted": 0, "shared_keys": 0, "judged": 2}, None),
        (ELSEWHERE, {"asked": 0, "judged": 1}, few(DoubtCode.FEW_KNOWN_OPERATIONS, 1, of=50)),
        (
            ELSEWHERE,
            {"asked": 0, "judged": 1, "operations": 1},
            few(DoubtCode.FEW_KNOWN_OPERATIONS, 1, of=0),
        ),
        (ELSEWHERE, {"asked": 0, "answered": 0}, Doubt(DoubtCode.NO_ANSWERS)),
        (
            ELSEWHERE,
            {"operations": 0},
            Doubt(DoubtCode.NO_OPERATIONS),
        ),
        (
            OURS,
            {"operations": 0},
            Doubt(DoubtCode.NO_OPERATIONS),
        ),
        (msgspec.structs.replace(OURS, fewest=4), {"granted": 4, "accepted": 4}, None),
        (
            msgspec.structs.replace(OURS, fewest=4),
            {"granted": 3},
            few(DoubtCode.FEW_GRANTS, 3, of=4),
        ),
        (
            msgspec.structs.replace(OURS, fewest=4),
            {"accepted": 3},
            few(DoubtCode.FEW_WRITES, 3, of=4),
        ),
        (
            msgspec.structs.replace(OURS, fewest=20),
            {"accepted": 20},
            few(DoubtCode.FEW_GRANTS, 10, of=20),
        ),
        (msgspec.structs.replace(ELSEWHERE, fewest=11), {}, few(DoubtCode.FEW_GRANTS, 10, of=11)),
    ],
)
def test_too_few_of_something(terms: Terms, amounts: dict[str, int], doubt: Doubt | None) -> None:
    assert list(too_few(terms, replace(ENOUGH, **amounts))) == ([] if doubt is None else [doubt])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("1 write 0-1 7", [few(DoubtCode.FEW_KNOWN_OPERATIONS, 1, of=0)]),
        ("1 write 0-1 7 \n 2 read 2-3 = 7", []),
        ("1 write 0-1 7 \n 2 sing 2-3", [few(DoubtCode.FEW_KNOWN_OPERATIONS, 1, of=2)]),
    ],
)
def test_what_is_not_about_a_lock(lines: str, expected: list[Doubt]) -> None:
    assert list(doubts(Case(history(lines)))) == expected


def aimed(*lines: str) -> list[Doubt]:
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
        ("fault pause n1 32-33", "2 acquire 31.9-33.5!", True),  # it had asked before, and waited
        ("fault pause n1 32-33", "2 acquire 31.1-31.9!", False),  # and was refused before
        ("fault pause n1 32-33", "2 acquire:other 32-32.5!", False),
        ("fault pause n1 32-33", "1 acquire 32-32.5!", False),
        ("fault pause n1 32-33", "2 read 32-32.5", False),
        ("fault kill n1 32-33", "2 acquire 32-32.5!", False),
    ],
)
def test_a_fault_that_is_aimed_at_holders(fault: str, wanted: str, *, struck: bool) -> None:
    found = {doubt.code for doubt in aimed(fault, wanted)}
    assert bool(found & {DoubtCode.NO_HOLDER_STRUCK, DoubtCode.FAULT_NOT_INJECTED}) != struck


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
    assert doubt == Doubt(DoubtCode.NO_HOLDER_STRUCK, asked="pause:holder")


def test_one_that_is_never_healed_strikes_until_the_end() -> None:
    (doubt,) = aimed("fault pause n1 32-", "2 acquire 110.1-110.2!")
    assert doubt.fault is not None
    assert (doubt.code, doubt.fault.start_ns) == (DoubtCode.FAULT_UNHEALED, ns(32))


WRITTEN = turns(12) + "\n 1 acquire 200-201 \n 1 write 202-203 a base=null seq=7"


@pytest.mark.parametrize(
    ("lines", "doubt"),
    [
        ("storage write 2 b seq=9", Doubt(DoubtCode.WRITE_NEVER_SENT, process=2, seq=9)),
        ("storage write 2 b seq=9", Doubt(DoubtCode.WRITE_NOT_REMEMBERED, "k", "n1", seq=7)),
        ("storage write! 1 a seq=7", Doubt(DoubtCode.WRITE_CONTRADICTED, "k", "n1", seq=7)),
    ],
)
def test_what_the_ledger_says(lines: str, doubt: Doubt) -> None:
    assert doubt in doubts(Case(history(WRITTEN, lines)))


def test_a_ledger_is_missed_only_where_there_is_a_storage() -> None:
    silent = Doubt(DoubtCode.LEDGER_MISSING)
    assert silent in list(doubts(Case(history(WRITTEN, workload="register"))))
    assert silent not in list(doubts(Case(history(WRITTEN, workload="mutex"))))
    for other in ("202-203! a base=null seq=7", "202-203 a base=null", "202-203? a seq=7"):
        told = WRITTEN.replace("202-203 a base=null seq=7", other)
        assert silent not in list(doubts(Case(history(told, workload="register"))))


def test_what_the_machine_did_is_doubted() -> None:
    lines = "1 acquire 0-1 \n 2 acquire 110-111 \n 1 release 130-131 \n 2 release 140-141"
    (doubt, *_) = judged("stall n1 60-125", lines, ttl_ms=100).doubts
    stalled = Doubt(DoubtCode.MACHINE_STALLED, "k", "n1", check="overlap", length_ns=ns(65))
    assert doubt == stalled
    early = "1 acquire 0-1 \n 2 acquire 50-51 \n 1 release 60-61 \n 2 release 70-71"
    (doubt, *_) = judged("clock-step n2 30 500", early, ttl_ms=100).doubts
    assert doubt == Doubt(DoubtCode.CLOCK_JUMPED, "k", "n1", check="overlap")
    refused = judged(refusals(until=2100), "stall n2 0-2000", "1 acquire:j 0-1", ttl_ms=100).doubts
    assert Doubt(DoubtCode.MACHINE_STALLED, "k", check="stuck", length_ns=ns(2000)) in refused


def test_what_the_machine_did_behind_a_guard_is_no_doubt() -> None:
    lines = "1 acquire 0-1 \n 2 acquire 110-111 \n 1 release 130-131 \n 2 release 140-141"
    judgement = judged("stall n1 60-125", lines, ttl_ms=100, guard="cas")
    assert judgement.findings
    assert judgement.doubts == ()
