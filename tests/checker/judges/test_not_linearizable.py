"""Which histories no order explains; what is made of leases and refusals; what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import CHECKS, Case, Code, Culprit, Judgement, Verdict, judge
from lockcheck.checker.doubt import TOO_SHORT, Doubt, DoubtCode
from lockcheck.checker.finding import Definition
from lockcheck.checker.linearizability import Patience
from lockcheck.results.story.wording.codes import in_full, note
from lockcheck.results.story.wording.definitions import comparison
from tests.checker.dsl import codes, history, judged

EXPLAINED = {
    "one after the other": ("1 acquire 0-1 \n 1 release 5-6 \n 2 acquire 2-8 \n 2 release 9-", {}),
    "let in while it is being released": ("1 acquire 0-1 \n 1 release 5-9 \n 2 acquire 2-6", {}),
    "let in at the instant of the release": ("1 acquire 0-1 \n 1 release 5-9 \n 2 acquire 2-5", {}),
    "a release that nobody confirmed": ("1 acquire 0-1 \n 1 release 5-6? \n 2 acquire 2-6", {}),
    "an acquire that nobody confirmed": ("1 acquire 0-1? \n 2 acquire 2-6", {}),
    "a lease that had run out": ("1 acquire 0-1 \n 2 acquire 2-11 \n 2 release 12-",
        {"ttl_ms": 10}),
    "a lease of its own": ("1 acquire 0-1 ttl_ms=10 \n 2 acquire 2-11", {}),
    "a lease by a clock that is a little fast": (
        "1 acquire 0-1 \n 2 acquire 2-99.1", {"ttl_ms": 100}
    ),
    "a renewed lease that had run out": (
        "1 acquire 0-1 \n 1 renew 8-9 \n 2 acquire 2-19", {"ttl_ms": 10}
    ),
    "renewed, and told that its session was over": (
        "1 acquire 0-1 \n 1 renew 3-4 \n 1 lost 50 \n 2 acquire 2-51", {}
    ),
    "renewed, and then refused": (
        "1 acquire 0-1 \n 1 renew 3-4 \n 1 renew 49-50! \n 2 acquire 2-51", {}
    ),
    "told that its session was over": ("1 acquire 0-1 \n 1 lost 50 \n 2 acquire 2-51", {}),
    "its renewal was refused": ("1 acquire 0-1 \n 1 renew 49-50! \n 2 acquire 2-51", {}),
    "told that its session was over, another key in between": (
        "1 acquire 0-1 \n 2 acquire:j 2-3 \n 1 lost 50 \n 3 acquire 4-51", {}
    ),
    "a blind release of what was gone": (
        '1 acquire 0-1 \n 2 acquire 2-11 \n 1 release 12-13 = {"removed": 0, "blind": true}',
        {"ttl_ms": 10},
    ),
    "a blind release of what was gone, by its field": (
        "1 acquire 0-1 \n 2 acquire 2-11 \n 1 release 12-13 blind=true", {"ttl_ms": 10}
    ),
    "a reentrant lock": (
        "1 acquire 0-1 \n 1 acquire 2-3 \n 1 release 4-5 \n 1 release 6-7 \n 2 acquire 8-9", {}
    ),
    "tokens in order": ("1 acquire 0-1 token=4 \n 1 release 2-3 \n 2 acquire 4-5 token=9", {}),
    "two of a semaphore": (
        "1 acquire 0-1 \n 2 acquire 2-3 \n 1 release 4-5 \n 3 acquire 6-7", {"permits": 2}
    ),
    "a mutex that another releases": (
        "1 acquire 0-1 \n 2 release 2-3 \n 2 acquire 4-5", {"model": "mutex"}
    ),
    "a register": ("1 write 0-1 7 \n 2 read 2-3 = 7", {}),
    "a write that nobody confirmed, and was read": ("1 write 0-1? 7 \n 2 read 2-3 = 7", {}),
    "a read of either while it is written": ("1 write 0-9 7 \n 2 read 2-3 = null", {}),
    "a refused cas": ("1 write 0-1 7 \n 2 cas 2-3! [3,4] \n 1 read 4-5 = 7", {}),
    "values that are written twice": (
        "1 write 0-1 7 \n 1 write 2-3 8 \n 1 write 4-5 7 \n 2 read 6-7 = 7", {}
    ),
    "a counter": ("1 add 0-1 2 \n 2 add 0-1 3 \n 1 read 2-3 = 5", {}),
    "a set": ('1 add 0-1 "a" \n 2 add 0-9 "b" \n 1 read 2-3 = ["a"]', {}),
    "locks apart": ("1 acquire:j 0-1 \n 2 acquire:k 2-3", {}),
}  # fmt: skip

UNEXPLAINED = {
    "two at once": ("1 acquire 0-1 \n 2 acquire 2-3 \n 1 release 5-6", {}),
    "let in before the lease was over": (
        "1 acquire 0-1 \n 2 acquire 2-97 \n 2 release 98-99", {"ttl_ms": 100}
    ),
    "let in before the renewed lease was over": (
        "1 acquire 0-1 \n 1 renew 8-9 \n 2 acquire 2-17", {"ttl_ms": 10}
    ),
    "released although the lease had gone to another": (
        "1 acquire 0-1 \n 2 acquire 2-12 \n 1 release 13-14 \n 2 release 15-16", {"ttl_ms": 10}
    ),
    "released what was never granted": ("1 acquire 0-1 \n 1 release 2-3 \n 2 release 4-5", {}),
    "granted twice to one that never released": (
        "1 acquire 0-1 \n 1 acquire 2-3", {"model": "owner-mutex"}
    ),
    "its renewal was not answered": ("1 acquire 0-1 \n 1 renew 49-50? \n 2 acquire 2-51", {}),
    "a mutex, and its release was refused": (
        "1 acquire 0-1 \n 1 release 5-6! \n 2 acquire 7-8", {"model": "mutex"}
    ),
    "somebody else's session was over": ("1 acquire 0-1 \n 3 lost 50 \n 2 acquire 2-51", {}),
    "its session was over for another key": ("1 acquire 0-1 \n 1 lost:j 50 \n 2 acquire 2-51", {}),
    "its session was over before": ("1 lost 0.5 \n 1 acquire 1-2 \n 2 acquire 3-51", {}),
    "a release that looked, of what another holds": (
        '1 acquire 0-1 \n 2 release 2-3 = {"removed": 1}', {}
    ),
    "a release that looked, beside a blind one": (
        '1 acquire 0-1 \n 1 release 2-3 = {"blind": true} \n 2 release 4-5 = {"removed": 1}', {}
    ),
    "a value that looks like a blind release": (
        '1 write 0-1 7 \n 2 read 2-3 = {"blind": true}', {}
    ),
    "tokens that go back": ("1 acquire 0-1 token=9 \n 1 release 2-3 \n 2 acquire 4-5 token=4", {}),
    "three of a semaphore": (
        "1 acquire 0-1 \n 2 acquire 2-3 \n 3 acquire 4-5", {"permits": 2}
    ),
    "a mutex that is held": ("1 acquire 0-1 \n 2 acquire 2-3", {"model": "mutex"}),
    "an old value": ("1 write 0-1 7 \n 1 write 2-3 8 \n 2 read 4-5 = 7", {}),
    "a value that nobody wrote": ("1 write 0-1 7 \n 2 read 4-5 = 9", {}),
    "a text that is no number": ('1 write 0-1 7 \n 2 read 4-5 = "7"', {}),
    "two who replaced the same": (
        "1 write 0-1 7 \n 1 cas 2-3 [7,8] \n 2 cas 2-3 [7,9]", {}
    ),
    "an old value that was written twice": (
        "1 write 0-1 7 \n 1 write 2-3 7 \n 1 write 4-5 8 \n 2 read 6-7 = 7", {}
    ),
    "a counter that forgets": ("1 add 0-1 2 \n 2 add 0-1 3 \n 1 read 2-3 = 2", {}),
    "a set that forgets": ('1 add 0-1 "a" \n 2 add 0-1 "b" \n 1 read 2-3 = ["a"]', {}),
}  # fmt: skip


def not_linearizable(judgement: Judgement) -> bool:
    return Code.NOT_LINEARIZABLE.value in codes(judgement)


@pytest.mark.parametrize(("lines", "terms"), EXPLAINED.values(), ids=EXPLAINED)
def test_an_order_explains(lines: str, terms: dict[str, Any]) -> None:
    judgement = judged(lines, **terms)
    assert not not_linearizable(judgement), judgement.findings
    assert {d.linearizable for d in judgement.definitions} == {Verdict.OK}


@pytest.mark.parametrize(("lines", "terms"), UNEXPLAINED.values(), ids=UNEXPLAINED)
def test_no_order_explains(lines: str, terms: dict[str, Any]) -> None:
    judgement = judged(lines, **terms)
    assert not_linearizable(judgement)
    assert judgement.verdict is Verdict.VIOLATION
    [finding] = judgement.of(Code.NOT_LINEARIZABLE)
    assert finding.operations
    assert note(finding).endswith(".")
    assert finding.blame.who in (Culprit.SERVICE, Culprit.CLIENT)


def test_the_check_by_itself_finds_the_same() -> None:
    given = history("1 acquire 0-1 \n 2 acquire 2-3")
    found = list(CHECKS[Code.NOT_LINEARIZABLE].find(Case(given)))
    assert found == list(judge(given).of(Code.NOT_LINEARIZABLE))


def test_a_cycle_is_written_out() -> None:
    [finding] = judged(UNEXPLAINED["an old value"][0]).findings
    assert sum("has to come before" in step for step in in_full(finding)) >= 2
    assert in_full(finding)[-1] == "That is a cycle, so no order can be right."


def test_the_longest_order_is_written_out() -> None:
    [finding] = judged(UNEXPLAINED["an old value that was written twice"][0]).findings
    steps = in_full(finding)
    assert any(step.startswith("The longest order that is right has 3") for step in steps)
    assert steps[-1].startswith("No order can go on past n2 read k: 7")
    assert len(steps) == 1 + 1 + 3 + 1


REFUSED = "1 acquire 0-1 \n 1 release 5-6! \n 2 acquire 7-8 \n 2 release 9-10"


BEGUN_BEFORE = [
    "1 release 0-1 \n 2 acquire 2-3",
    "1 renew 0-1 \n 1 release 2-3 \n 2 acquire 4-5",
    "9 renew 0-1 of=1 \n 1 release 2-3 \n 2 acquire 4-5",
    "1 acquire:j 0-1 \n 1 release 2-3",
    "2 acquire 0-5! \n 1 release 6-7 \n 2 acquire 8-9",
]
WITHIN = [
    ("1 acquire 0-1 \n 2 acquire 5-6", 100, "process 1"),
    ("1 release 0-1 \n 1 acquire 2-3 \n 2 acquire 5-6", 100, "process 1"),
    ("1 acquire 0-1 \n 9 renew 50-51 of=1 \n 2 acquire 110-111", 100, "process 1"),
    ("1 acquire 0-1 \n 1 release 2-3? \n 4 acquire 4-5 \n 1 acquire 8-9", 100, "process 4"),
]
# Whoever is not heard of again may have had a release under way when the log was cut.
HEARD_OF_AGAIN = "1 acquire:j 120-121 \n 4 acquire:i 120-121"


PERHAPS_NESTED = [
    "1 acquire 0-1 \n 1 release 2-3 \n 1 release 4-5",
    "1 acquire 0-1 \n 1 release 2-3 \n 1 renew 4-5",
    "1 acquire 0-1 token=5 \n 1 acquire 2-3? \n 1 release 4-5 \n 1 acquire 6-7 token=5",
]


@pytest.mark.parametrize("lines", BEGUN_BEFORE)
@pytest.mark.parametrize("ttl_ms", [None, 100])
def test_what_was_granted_before_the_log_says_nothing(lines: str, ttl_ms: int | None) -> None:
    judgement = judged(lines, partial=True, ttl_ms=ttl_ms)
    assert not not_linearizable(judgement)
    assert {doubt.code for doubt in judgement.doubts} <= TOO_SHORT


@pytest.mark.parametrize(("lines", "ttl_ms", "holder"), WITHIN)
def test_what_was_granted_in_it_does(lines: str, ttl_ms: int, holder: str) -> None:
    assert not_linearizable(judged(lines, HEARD_OF_AGAIN, partial=True, ttl_ms=ttl_ms))
    cut = judged(lines, partial=True, ttl_ms=ttl_ms)
    assert not not_linearizable(cut)
    [doubt] = (doubt for doubt in cut.doubts if doubt.code not in TOO_SHORT)
    assert (doubt.code, doubt.node) == (DoubtCode.MAYBE_UNLOGGED, holder)


@pytest.mark.parametrize("lines", PERHAPS_NESTED)
def test_what_may_have_been_entered_again_is_asked(lines: str) -> None:
    judgement = judged(lines, partial=True)
    assert not judgement.findings
    [doubt] = (doubt for doubt in judgement.doubts if doubt.code not in TOO_SHORT)
    assert doubt.code is DoubtCode.MAYBE_REENTRANT
    assert not judged(lines, partial=True, model=doubt.instead).findings
    assert not_linearizable(judged(lines, partial=True, model=doubt.model))


def test_a_lease_that_a_log_does_not_tell_of_may_have_run_out() -> None:
    judgement = judged("1 acquire 0-1 \n 2 acquire 5-6", partial=True)
    assert not not_linearizable(judgement)
    assert Doubt(DoubtCode.MAYBE_LEASED, "k") in judgement.doubts


@pytest.mark.parametrize(
    ("lines", "terms", "reason"),
    [
        ("1 acquire 0-1", {"model": "queue"}, "unknown model 'queue': choose from "),
        ("1 acquire 0-1", {"model": "mutex", "permits": 2}, "the model mutex has no permits"),
        ("1 write 0-1 7 \n 2 add 2-3 8", {"model": "register"}, "register does not know add"),
        ("1 write 0-1 7", {"model": "mutex"}, "the model mutex does not know write"),
    ],
)
def test_a_model_that_does_not_fit(lines: str, terms: dict[str, Any], reason: str) -> None:
    judgement = judged(lines, **terms)
    assert judgement.definitions == ()
    [doubt] = (each for each in judgement.doubts if each.code is DoubtCode.MODEL_MISFIT)
    assert reason in doubt.reason
    assert DoubtCode.CHECK_CRASHED not in {each.code for each in judgement.doubts}


def test_what_is_said_of_a_register() -> None:
    [finding] = judged(UNEXPLAINED["an old value"][0]).findings
    assert (finding.length_ns, finding.blame.by_ns, finding.holds) == (0, 0, ())
    assert in_full(finding)[0].startswith("Judged by the model register: ")
    good = definitions(EXPLAINED["a register"][0])["k"]
    assert comparison(good) == "An order of its operations explains all answers."
    wrong = definitions(UNEXPLAINED["an old value"][0])["k"]
    assert comparison(wrong) == "No order of its operations explains the answers."


def test_what_is_said_of_a_lock() -> None:
    [finding] = judged(UNEXPLAINED["two at once"][0]).of(Code.NOT_LINEARIZABLE)
    assert [hold.process for hold in finding.holds] == [1, 2]


def test_where_a_refused_release_explains_it_nobody_is_accused() -> None:
    """The lease that had run out, or the same release sent twice: nobody knows."""
    judgement = judged(REFUSED)
    assert not not_linearizable(judgement)
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.doubts == (Doubt(DoubtCode.MAYBE_LEASED, "k"),)
    [definition] = judgement.definitions
    assert definition.linearizable is Verdict.VIOLATION
    assert comparison(definition).startswith(
        "The two checks disagree: no two clients held it at once, yet"
    )


def test_with_its_lease_known_that_is_explained_or_not() -> None:
    assert judged(REFUSED, ttl_ms=5).verdict is Verdict.OK
    assert judged(f"{REFUSED} \n 3 acquire 8.1-8.5", ttl_ms=5).verdict is Verdict.VIOLATION


def test_what_the_machine_did_is_no_violation() -> None:
    judgement = judged(
        "1 acquire 0-1 \n 1 release 90-91 \n 2 acquire 2-52 \n 2 release 95-96",
        "clock-step n1 50 60",
        ttl_ms=100,
    )
    assert not_linearizable(judgement)
    assert judgement.verdict is Verdict.UNKNOWN


def test_behind_a_guard_the_lock_is_shown_and_the_data_count() -> None:
    terms: dict[str, Any] = {"backend": "b", "workload": "register", "guard": "cas"}
    lock = judged(UNEXPLAINED["two at once"][0], **terms)
    assert {f.effect for f in lock.of(Code.NOT_LINEARIZABLE)} == {Verdict.OK}
    data = judged(UNEXPLAINED["an old value"][0], **terms)
    assert {f.effect for f in data.of(Code.NOT_LINEARIZABLE)} == {Verdict.VIOLATION}


def test_impatience_is_unknown() -> None:
    """Values written twice need the search, and it may not go on when it asks."""
    writes = [f"{n % 5} write {n // 5 * 10}-{n // 5 * 10 + 9} {n % 3}" for n in range(20_000)]
    reads = [f"6 read {n * 10 + 9.2}-{n * 10 + 9.5} = {n % 3}" for n in range(4_000)]
    given = history(*writes, *reads)
    judgement = judge(given, Patience(lambda: False))
    assert judgement.verdict is Verdict.UNKNOWN
    doubt = judgement.doubts[0]
    assert (doubt.code, doubt.key, doubt.model) == (DoubtCode.UNDECIDED, "k", "register")
    [definition] = judgement.definitions
    assert comparison(definition).startswith("It could not be decided whether an order explains")
    assert judge(given).verdict is Verdict.OK


def test_a_lock_that_some_share() -> None:
    shared = "1 acquire 0-1 shared=true \n 2 acquire 2-3 shared=true \n 1 release 4-5"
    stored = "3 write:r 10-11 a \n 3 read:r 12-13 = b"
    [lock] = judged(shared).definitions
    assert (lock.model, lock.linearizable, lock.overlaps) == ("shared", Verdict.OK, 0)
    assert judged(shared).verdict is Verdict.OK
    assert codes(judged(shared, stored)) == ["not-linearizable"]
    writer = judged(shared, "3 acquire 3.2-3.5 \n 3 release 3.6-3.8")
    assert set(codes(writer)) == {"overlap", "not-linearizable"}
    assert "n1 and n2 hold it" in writer.definitions[0].reason


def test_a_lock_that_some_share_and_enter_again_has_no_model() -> None:
    shared = "1 acquire 0-1 shared=true \n 1 acquire 2-3 shared=true \n 1 release 4-5"
    [lock] = judged(shared, model="reentrant").definitions
    assert (lock.model, lock.linearizable, lock.overlaps) == ("shared lock", Verdict.UNKNOWN, 0)


SPARE = """
    5 acquire 0-1
    5 release 2-3?
    1 acquire 300-301
    2 acquire 302-303
    3 acquire 304-305
    3 release 306-307
    2 release 308-309
    1 acquire:j 310-311"""


def test_permits_that_have_owners_are_not_given_back_by_others() -> None:
    terms: dict[str, Any] = {"permits": 2, "ttl_ms": 100, "partial": True}
    counted = judged(SPARE, model="semaphore", **terms)
    assert "not-linearizable" not in codes(counted)
    owned = judged(SPARE, model="owner-semaphore", **terms)
    assert "not-linearizable" in codes(owned)
    unnamed = judged(SPARE, **terms)
    assert unnamed.definitions == owned.definitions
    assert "all 2 permits are held" in unnamed.definitions[0].reason


def definitions(lines: str, **terms: Any) -> dict[str, Definition]:
    return {definition.key: definition for definition in judged(lines, **terms).definitions}


def test_both_definitions_stand_side_by_side() -> None:
    agreed = definitions("1 acquire 0-1 \n 1 release 2-3 \n 2 acquire 4-5")["k"]
    assert (agreed.model, agreed.engine, agreed.overlaps) == ("owner-mutex", "sweep", 0)
    assert comparison(agreed).startswith("Both checks agree: no two")
    wrong = definitions("1 acquire 0-1 \n 2 acquire 2-3 \n 1 release 5-6 \n 2 release 7-8")["k"]
    assert (wrong.linearizable, wrong.overlaps) == (Verdict.VIOLATION, 1)
    assert comparison(wrong).startswith("Both checks agree: two clients held it at once.")
    outlived = definitions(
        "1 acquire 0-1 \n 2 acquire 2-12 \n 1 lost 20 \n 2 release 30-31", ttl_ms=10
    )
    assert (outlived["k"].linearizable, outlived["k"].overlaps) == (Verdict.OK, 1)
    assert comparison(outlived["k"]).startswith(
        "The two checks disagree: two clients held it at once, yet"
    )


def test_objects_with_nothing_to_tell_are_one_line() -> None:
    quiet = [f"1 acquire:k{n} {n}-{n}.1 \n 1 release:k{n} {n}.2-{n}.3" for n in range(5)]
    assert list(definitions("\n".join(quiet))) == ["5 objects"]
    loud = "2 acquire:k0 0.15-0.18 \n 2 release:k0 0.4-0.5"
    assert list(definitions("\n".join([*quiet, loud]))) == ["k0", "4 others"]


def test_the_engine_is_told() -> None:
    engines = {
        "sweep": "1 acquire 0-1",
        "zones": "1 write 0-1 7 \n 2 read 2-3 = 7",
        "search": "1 write 0-1 7 \n 1 write 2-3 7 \n 2 read 4-5 = 7",
    }
    for engine, lines in engines.items():
        [definition] = definitions(lines).values()
        assert definition.engine == engine
