"""The verdict: violation beats unknown beats ok, and what cannot be told is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lockcheck.checker import CHECKS, Blame, Case, Code, Culprit, Finding, Verdict, judge
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.history import Terms
from lockcheck.history.event import TRANSACTION
from tests.checker.dsl import codes, history, judged, ns

OVERLAP = "1 acquire 0-1 \n 2 acquire 50-51 \n 1 release 60-61 \n 2 release 70-71"


def turns(number: int, *, clients: int = 3, gap: int = 10) -> str:
    """Clients that hold the lock one after the other, each once in a while."""
    lines = (
        f"{n % clients + 1} acquire {n * gap}-{n * gap + 1} \n"
        f"{n % clients + 1} release {n * gap + 5}-{n * gap + 6}"
        for n in range(number)
    )
    return "\n".join(lines)


def run(*lines: str, **terms: object) -> tuple[Verdict, tuple[Doubt, ...]]:
    values = {"backend": "redis", "clients": 3, "ttl_ms": 100} | terms
    judgement = judged(*lines, **values)  # type: ignore[arg-type]
    return judgement.verdict, judgement.doubts


def test_every_code_has_its_check_and_its_words() -> None:
    assert list(CHECKS) == [check.code for check in CHECKS.values()]
    assert set(CHECKS) >= {code.value for code in Code}
    for check in CHECKS.values():
        assert "\n" not in check.meaning
        assert len(check.explanation) > 200
        assert all(len(line) <= 100 for line in check.explanation.splitlines())


def test_a_run_that_held_is_ok() -> None:
    assert run(turns(12), "fault pause n1 20-40", faults=("pause", "none")) == (Verdict.OK, ())


def test_a_crashed_check_is_unknown_and_the_others_still_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def crash(told: Case) -> Iterator[Finding]:
        yield from overlaps(told)
        raise ZeroDivisionError("by mistake")

    overlaps = CHECKS["overlap"].find
    broken = replace(CHECKS["overlap"], find=crash)
    monkeypatch.setitem(CHECKS, "overlap", broken)
    good = judge(history(turns(12)))
    assert good.verdict is Verdict.UNKNOWN
    reason = "ZeroDivisionError: by mistake"
    assert good.doubts == (Doubt(DoubtCode.CHECK_CRASHED, check="overlap", reason=reason),)
    bad = judge(history(OVERLAP, ttl_ms=100))
    assert bad.verdict is Verdict.VIOLATION
    assert len(bad.findings) == len(bad.doubts) == 1


def test_a_crash_among_the_doubts_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: Case) -> Iterator[Doubt]:
        raise KeyError("x")

    monkeypatch.setattr("lockcheck.checker.whole_run.soundness.doubts", crash)
    assert judge(history(turns(12))).verdict is Verdict.UNKNOWN


UNSOUND = {
    "a fault that was not proven": (
        "fault pause n1 20-40!",
        (DoubtCode.FAULT_UNPROVEN, "it would not stop"),
    ),
    "a fault that was never healed": ("fault pause n1 20-", (DoubtCode.FAULT_UNHEALED, "")),
}


@pytest.mark.parametrize(("line", "why"), UNSOUND.values(), ids=UNSOUND)
def test_faults_that_make_a_run_unknown(line: str, why: tuple[DoubtCode, str]) -> None:
    verdict, (doubt,) = run(turns(12), line, faults=("pause",))
    assert verdict is Verdict.UNKNOWN
    assert doubt.fault is not None
    assert (doubt.code, doubt.fault.why_unproven) == why
    assert (doubt.fault.name, doubt.fault.nodes, doubt.fault.start_ns) == ("pause", ("n1",), ns(20))


def test_each_fault_that_was_asked_for_must_have_been_injected() -> None:
    hit = "fault pause n1 32-34 \n 2 acquire 33-33.5!"
    verdict, (doubt,) = run(turns(12), hit, faults=("pause:holder", "kill"))
    assert verdict is Verdict.UNKNOWN
    assert doubt == Doubt(DoubtCode.FAULT_NOT_INJECTED, asked="kill")


def test_a_fault_aimed_at_holders_must_have_hit_one() -> None:
    """Its trigger is the grant, and the release may still be quicker."""
    hit = "fault pause n1 32-34 \n 2 acquire 33-33.5!"
    assert run(turns(12), hit, faults=("pause:holder",)) == (Verdict.OK, ())
    assert run(turns(12), "fault pause n1 36-40", hit, faults=("pause:holder",))[0] is Verdict.OK
    nobody_wants_it = "fault pause n1 32-34"
    at_another = "fault pause n2 32-34 \n 3 acquire 33-33.5!"
    for missed in ("fault pause n1 36-39", at_another, "fault pause n1 900-950", nobody_wants_it):
        verdict, (doubt,) = run(turns(12), missed, faults=("pause:holder",))
        assert verdict is Verdict.UNKNOWN
        assert doubt == Doubt(DoubtCode.NO_HOLDER_STRUCK, asked="pause:holder")


def test_locks_that_nobody_shared_tell_nothing() -> None:
    lines = "\n".join(
        f"{n % 3 + 1} acquire:k{n} {n * 10}-{n * 10 + 1}\n"
        f"{n % 3 + 1} release:k{n} {n * 10 + 5}-{n * 10 + 6}"
        for n in range(12)
    )
    verdict, (doubt,) = run(lines)
    assert verdict is Verdict.UNKNOWN
    assert doubt.code is DoubtCode.NO_KEY_SHARED


def test_without_writes_there_is_no_data_to_judge() -> None:
    # That the storage says nothing is no doubt of its own where nothing was asked of it.
    verdict, (doubt,) = run(turns(12), workload="register", guard="fence")
    assert verdict is Verdict.UNKNOWN
    assert doubt == Doubt(DoubtCode.FEW_WRITES, number=0, of=10)


def test_a_violation_beats_the_doubts() -> None:
    verdict, doubts = run(OVERLAP, "fault pause n1 20-40!")
    assert verdict is Verdict.VIOLATION
    assert len(doubts) == 2  # and there were too few acquisitions


@pytest.mark.parametrize(
    ("lines", "terms", "verdict"),
    [
        (turns(10), {}, Verdict.OK),
        (turns(9), {}, Verdict.UNKNOWN),
        (turns(10, clients=1), {}, Verdict.UNKNOWN),
        (turns(10, clients=1), {"clients": 2}, Verdict.UNKNOWN),
        (turns(10, clients=1), {"clients": 1}, Verdict.UNKNOWN),
        (turns(2), {"backend": ""}, Verdict.OK),
        (turns(1), {"backend": ""}, Verdict.UNKNOWN),
        ("", {"backend": ""}, Verdict.UNKNOWN),
    ],
)
def test_too_few_operations_do_not_tell(
    lines: str, terms: dict[str, object], verdict: Verdict
) -> None:
    assert run(lines, **terms)[0] is verdict


def test_a_storage_that_says_nothing() -> None:
    lines = turns(12) + "\n 1 acquire 200-201 \n 1 write 202-203 a base=null seq=1"
    assert run(lines, workload="register")[1] == (
        Doubt(DoubtCode.FEW_WRITES, number=1, of=10),
        Doubt(DoubtCode.LEDGER_MISSING),
    )
    (doubt,) = run(lines, "storage write 1 a base=null seq=1", workload="register")[1]
    assert doubt.code is DoubtCode.FEW_WRITES


@pytest.mark.parametrize(
    ("answer", "entry"),
    [
        ("202-203!", "storage write 1 a seq=1"),  # it was said not to have happened
        ("202-203", "storage write! 1 a seq=1"),  # it was acknowledged, and refused
    ],
)
def test_a_client_and_the_storage_that_contradict_each_other(answer: str, entry: str) -> None:
    write = f"1 acquire 200-201 \n 1 write {answer} a base=null seq=1"
    verdict, doubts = run(turns(12), write, entry)
    assert verdict is Verdict.UNKNOWN
    assert DoubtCode.WRITE_CONTRADICTED in {doubt.code for doubt in doubts}


@pytest.mark.parametrize("guard", ["fence", "cas"])
def test_behind_a_guard_an_overlap_is_shown_and_does_not_count(guard: str) -> None:
    judgement = judged(OVERLAP, guard=guard, ttl_ms=100)
    assert codes(judgement) == ["overlap", "not-linearizable"]
    assert {f.effect for f in judgement.findings} == {Verdict.OK}
    assert judgement.verdict is Verdict.OK


EVERY_GUARD = {"fence", "cas", TRANSACTION}
COUNT_BEHIND = {
    "stale-write": {"fence", TRANSACTION},
    **dict.fromkeys(("lost-update", "token-regression", "double-run"), EVERY_GUARD),
    **dict.fromkeys(("stuck", "denied", "deadlock", "unfair"), EVERY_GUARD),
}


@pytest.mark.parametrize("code", CHECKS)
def test_what_counts_behind_which_guard(code: str) -> None:
    by_service, by_machine = (Blame(who, 0, None) for who in (Culprit.SERVICE, Culprit.MACHINE))
    effect, none = CHECKS[code].effect, Terms(guard="none")
    counting = {g for g in EVERY_GUARD if effect(Terms(guard=g), by_service) is Verdict.VIOLATION}
    assert counting == COUNT_BEHIND.get(code, set())
    assert effect(none, by_service) is Verdict.VIOLATION
    assert effect(none, by_machine) is Verdict.UNKNOWN


def test_without_a_storage_there_is_no_guard() -> None:
    assert judged(OVERLAP, guard="fence", workload="mutex").verdict is Verdict.VIOLATION


def test_a_guard_that_nobody_knows_is_none() -> None:
    assert judged(OVERLAP, guard="prayer").verdict is Verdict.VIOLATION


def test_findings_are_in_the_order_of_their_times() -> None:
    other = "3 acquire:j 0-1 \n 4 acquire:j 40-41 \n 3 release:j 60-61 \n 4 release:j 70-71"
    times = [f.time_ns for f in judged(OVERLAP, other).findings]
    assert len(times) == 4
    assert times == sorted(times)


def test_counts() -> None:
    counts = judged(
        """
        1 acquire 0-1 token=1
        2 acquire 2-3!
        fault pause n1 5-105
        fault pause n2 5-6!
        fault pause n3 5-6
        2 acquire 110-111 token=2
        2 write 112-113 b base=null seq=1
        1 write 130-131! a base=null seq=2 error=fenced
        2 write 132-133! c base=b seq=3 error=full
        1 write 134-135! d base=null seq=4 error=full
        3 acquire 300-301 token=3
        3 write 302-303! e base=x seq=5 error=cas
        3@n2 release 304-305""",
        guard="fence",
        ledger=True,
    ).counts
    assert counts.operations == 10
    assert (counts.acquisitions, counts.holders, counts.faults) == (3, 3, 2)
    assert (counts.writes_accepted, counts.writes_refused) == (1, 4)
    assert counts.stale_writes_refused == 3


def test_counts_without_a_ledger() -> None:
    counts = judged(
        """
        1 acquire 0-1
        2 acquire 110-111
        2 write 112-113 b seq=1
        1 write 130-131! a seq=2 error=late
        1 write 132-133! a error=unreachable""",
    ).counts
    assert (counts.writes_accepted, counts.writes_refused, counts.stale_writes_refused) == (1, 1, 1)
