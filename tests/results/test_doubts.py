"""The sentence of each doubt, and which of them stand beside a headline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lockcheck.checker.case import Case
from lockcheck.checker.doubt import Ahead, Clocks, Doubt, DoubtCode
from lockcheck.checker.finding import Judgement, Verdict
from lockcheck.history import Effect, FaultSpan
from lockcheck.results.story.wording.doubts import beside_the_headline, in_words, words_of
from tests.checker.dsl import ns
from tests.results.test_story import NO_COUNTS, Recording

PAUSE = FaultSpan(
    id=1,
    name="pause",
    nodes=("n1", "n2"),
    effect=Effect.STOPS,
    start_ns=ns(20),
    since_ns=None,
    proven_ns=None,
    healed_ns=None,
    proof="",
    why_unproven="it would not stop",
)
NO_REASON = FaultSpan(2, "slow", (), Effect.SLOWS, ns(20), None, None, None, "")
SET_RIGHT = (
    "with the clocks set right, all answers fit: say by --clock-error how far apart they can be"
)
NO_ORDER = "no order explains the answers about 'k', unless"

SENTENCES = [
    (
        Doubt(DoubtCode.RUN_UNFINISHED, reason="the agent went away"),
        "the run did not come to its end: the agent went away",
    ),
    (
        Doubt(DoubtCode.CHECK_CRASHED, check="overlap", reason="KeyError: 'x'"),
        "the check overlap crashed: KeyError: 'x'",
    ),
    (
        Doubt(DoubtCode.NO_OPERATIONS),
        "the history has no operations of clients, so there is nothing to judge",
    ),
    (
        Doubt(DoubtCode.NO_ANSWERS),
        "no operation of a client was ever answered, so there is nothing to judge",
    ),
    (
        Doubt(DoubtCode.FEW_KNOWN_OPERATIONS, number=1),
        "too few operations that a judge knows to tell: 1",
    ),
    (
        Doubt(DoubtCode.FEW_KNOWN_OPERATIONS, number=1, of=2),
        "too few operations that a judge knows to tell: 1, of 2",
    ),
    (
        Doubt(DoubtCode.ONE_CLIENT),
        (
            "there was only one client, so nobody could be let in beside it: run it again with"
            " more, such as --clients 5"
        ),
    ),
    (
        Doubt(DoubtCode.FEW_GRANTS, number=1, of=10),
        "too little happened to tell: the lock was granted once, with at least 10 needed",
    ),
    (
        Doubt(DoubtCode.FEW_HOLDERS, number=1),
        "too little happened to tell: 1 of the clients held the lock",
    ),
    (
        Doubt(DoubtCode.NO_KEY_SHARED),
        "too little happened to tell: no lock was ever held by two different clients",
    ),
    (
        Doubt(DoubtCode.FEW_WRITES, number=9, of=10),
        "too little happened to tell: the storage accepted 9 writes, with at least 10 needed",
    ),
    (
        Doubt(DoubtCode.PERMITS_UNUSED, number=2, of=3),
        "no more than 2 of 3 permits were ever held at once",
    ),
    (
        Doubt(DoubtCode.NEVER_SHARED),
        "clients asked for a lock that others may share, and no two ever shared it",
    ),
    (
        Doubt(DoubtCode.NEVER_REENTERED),
        "holders asked to be let in again, and none of them ever was",
    ),
    (
        Doubt(DoubtCode.NOT_GRANTED_AFTER_HEALING, "k", length_ns=ns(400), number=8, reason="held"),
        (
            "every fault was healed, and in the 400 ms that were left nobody was granted 'k': 8"
            " attempts failed, for example with 'held'"
        ),
    ),
    (
        Doubt(DoubtCode.NOT_GRANTED_AFTER_HEALING, "k", length_ns=ns(400), number=8),
        (
            "every fault was healed, and in the 400 ms that were left nobody was granted 'k': 8"
            " attempts failed"
        ),
    ),
    (
        Doubt(DoubtCode.FAULT_UNPROVEN, fault=PAUSE),
        "the fault pause on n1, n2 at 0.020 s was injected, but it would not stop",
    ),
    (
        Doubt(DoubtCode.FAULT_UNPROVEN, fault=NO_REASON),
        "the fault slow at 0.020 s was injected, but it was not proven",
    ),
    (
        Doubt(DoubtCode.FAULT_UNHEALED, fault=PAUSE),
        "the fault pause on n1, n2 at 0.020 s was never seen to be healed",
    ),
    (
        Doubt(DoubtCode.FAULT_UNHEALED, fault=replace(PAUSE, why_unhealed="n1 exited")),
        "the fault pause on n1, n2 at 0.020 s was never seen to be healed: n1 exited",
    ),
    (
        Doubt(DoubtCode.FAULT_NOT_INJECTED, asked="kill"),
        "the fault kill was asked for, but was never injected",
    ),
    (
        Doubt(DoubtCode.NO_HOLDER_STRUCK, asked="pause:holder"),
        "the fault pause:holder never struck a client while it held a lock that others wanted",
    ),
    (
        Doubt(DoubtCode.MACHINE_STALLED, "k", "n1", check="overlap", length_ns=ns(65)),
        (
            "the machine stalled for 65 ms on n1 while it held 'k', and that explains the"
            " overlap: run again on a quieter machine or with a longer TTL"
        ),
    ),
    (
        Doubt(DoubtCode.MACHINE_STALLED, "k", check="stuck", length_ns=ns(2000)),
        (
            "the machine stalled for 2.000 s, and that explains the stuck of 'k': run again on a"
            " quieter machine"
        ),
    ),
    (
        Doubt(DoubtCode.CLOCK_JUMPED, "k", "n1", check="overlap"),
        (
            "the host's clock jumped while n1 held 'k', and that explains the overlap: run again"
            " while nothing sets the clock"
        ),
    ),
    (
        Doubt(DoubtCode.CLOCKS_APART, clocks=Clocks(ns(17), (Ahead("b", ns(17), ns(23)),))),
        f"the clock of b seems to be 17 to 23 ms ahead; {SET_RIGHT}",
    ),
    (
        Doubt(
            DoubtCode.CLOCKS_APART,
            clocks=Clocks(ns(17), (Ahead("b", -ns(999.5), -ns(17)), Ahead("c", ns(5), ns(5)))),
        ),
        (
            "the clock of b seems to be at least 17 ms behind and the clock of c seems to be"
            f" 5.0 ms ahead; {SET_RIGHT}"
        ),
    ),
    (
        Doubt(DoubtCode.CLOCKS_APART, clocks=Clocks(ns(17))),
        f"the hosts' clocks seem to be 17 ms apart; {SET_RIGHT}",
    ),
    (
        Doubt(DoubtCode.CLOCKS_DRIFT, "k", "n2", check="overlap", length_ns=9_000_000),
        (
            "two clocks may drift apart by the 9.0 ms that n2 was let in to 'k' before the lease"
            " of its last holder was over: so the overlap proves nothing"
        ),
    ),
    (
        Doubt(DoubtCode.LEDGER_MISSING),
        "the storage's ledger is missing, so the fate of unanswered writes is unknown",
    ),
    (
        Doubt(DoubtCode.WRITE_NOT_REMEMBERED, "k", "n1", seq=7),
        "the storage does not remember write 7 of n1 to 'k', which it had acknowledged",
    ),
    (
        Doubt(DoubtCode.WRITE_NEVER_SENT, process=2, seq=9),
        "the storage served write 9 of process 2, which never sent it",
    ),
    (
        Doubt(DoubtCode.WRITE_CONTRADICTED, "k", "n1", seq=7),
        (
            "n1 and the storage contradict each other on write 7 of n1 to 'k': who is right decides"
            " the verdict"
        ),
    ),
    (
        Doubt(DoubtCode.MODEL_MISFIT, reason="the model mutex does not know write"),
        "the model mutex does not know write: what it says of these operations tells nothing",
    ),
    (
        Doubt(DoubtCode.UNDECIDED, "k", model="register", reason="patience ran out"),
        "whether 'k' fits the model register could not be decided: patience ran out",
    ),
    (
        Doubt(DoubtCode.UNDECIDED, None, model="register", reason="patience ran out"),
        "whether the only object fits the model register could not be decided: patience ran out",
    ),
    (
        Doubt(DoubtCode.MAYBE_REENTRANT, "k", model="owner-mutex", instead="reentrant"),
        (
            f"{NO_ORDER} whoever holds it can enter it again: say whether that is so (--model"
            " reentrant) or not (--model owner-mutex)"
        ),
    ),
    (
        Doubt(DoubtCode.MAYBE_LEASED, "k"),
        (
            f"{NO_ORDER} the lock has a lease the history does not mention, or was already held"
            " when it began: if it has a lease, say how long (--ttl); if neither is so, it is a"
            " violation"
        ),
    ),
    (
        Doubt(DoubtCode.MAYBE_UNLOGGED, "k", "a"),
        (
            f"{NO_ORDER} an operation of a is missing that was under way when the log was cut:"
            " nothing is heard of it afterwards. A longer log would tell"
        ),
    ),
    (
        Doubt(DoubtCode.MAYBE_UNSEEN, "k", length_ns=ns(2000)),
        (
            "'k' was refused to all for 2.000 s, although no client in this history can have held"
            " it: unless one that is missing here did, that is a violation"
        ),
    ),
    (
        Doubt(DoubtCode.MAYBE_RELEASED, "k"),
        (
            f"{NO_ORDER} a release that was refused had been done before, or the lease had ended"
            " sooner than was promised: look at who refused it"
        ),
    ),
]


@pytest.mark.parametrize(("doubt", "text"), SENTENCES, ids=[repr(d) for d, _ in SENTENCES])
def test_each_has_its_sentence(doubt: Doubt, text: str) -> None:
    assert words_of(doubt) == text


def test_none_is_without() -> None:
    assert {doubt.code for doubt, _ in SENTENCES} == {*DoubtCode}


def test_each_code_is_documented() -> None:
    documented = Path("docs/verdicts.md").read_text()
    assert [code for code in DoubtCode if f"`{code}`" not in documented] == []


def judgement(verdict: Verdict, *doubts: Doubt) -> Judgement:
    return Judgement(verdict, (), doubts, NO_COUNTS, case=Case(Recording().history()))


SHORT = Doubt(DoubtCode.FEW_GRANTS, number=1, of=10), Doubt(DoubtCode.NO_KEY_SHARED)
MISSING = Doubt(DoubtCode.LEDGER_MISSING)


def test_the_first_of_an_unknown_is_in_its_headline() -> None:
    assert beside_the_headline(judgement(Verdict.UNKNOWN, *SHORT)) == (
        "Too little happened to tell: no lock was ever held by two different clients.",
    )


def test_why_it_is_short_is_one_sentence_beside_a_violation() -> None:
    assert beside_the_headline(judgement(Verdict.VIOLATION, SHORT[0], MISSING, SHORT[1])) == (
        (
            "The run was short: enough for a violation, but not for an OK (the lock was granted"
            " once, with at least 10 needed; no lock was ever held by two different clients)."
        ),
        "The storage's ledger is missing, so the fate of unanswered writes is unknown.",
    )


def test_those_that_read_the_same_are_one() -> None:
    doubts = (Doubt(DoubtCode.MACHINE_STALLED, "k", check="stuck", length_ns=n) for n in (1, 2))
    assert len(in_words(judgement(Verdict.UNKNOWN, *doubts))) == 1


def test_the_repr_has_what_is_known() -> None:
    doubt = Doubt(DoubtCode.MACHINE_STALLED, "k", check="stuck", length_ns=5)
    assert repr(doubt) == "Doubt(machine-stalled, key='k', check='stuck', length_ns=5)"
