"""The general search in plain Python: it answers as the brute force does, and can prove it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker.linearizability.answer import Patience, endless
from lockcheck.checker.linearizability.calls import calls_of
from lockcheck.checker.linearizability.either import either
from lockcheck.checker.linearizability.leases import leased
from lockcheck.checker.linearizability.models import (
    COUNTER,
    FENCED,
    MODELS,
    MUTEX,
    OWNER_MUTEX,
    SET,
    Call,
    Model,
    register,
    semaphore,
)
from lockcheck.checker.linearizability.search import evidence as search_evidence
from lockcheck.checker.linearizability.search.plan import Found, Transitions, plan_of
from lockcheck.checker.linearizability.search.python import BYTES, PATIENCE_EVERY, Search
from lockcheck.checker.linearizability.search.search import search
from lockcheck.history.table import NEVER, Op, Table
from lockcheck.native import PURE
from tests.checker.dsl import table
from tests.checker.linearizability.brute import brute
from tests.checker.linearizability.evidence import assert_stands
from tests.checker.linearizability.generated import histories
from tests.often import often

each_model = pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)


@pytest.fixture(autouse=True, scope="module")
def in_python() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PURE, "1")
        yield


@each_model
@often
@given(data=st.data())
def test_it_answers_as_all_orders_do(model: Model, data: st.DataObject) -> None:
    history = data.draw(histories(model))
    answer = search(history, model)
    assert answer.linearizable == brute(history, model)
    if not answer.linearizable:
        assert_stands(answer, history, model)


@each_model
@often
@given(data=st.data())
def test_short_of_memory_it_answers_the_same(model: Model, data: st.DataObject) -> None:
    history = data.draw(histories(model))
    many = data.draw(st.integers(0, 6))
    assert found(history, model, many).linearizable == brute(history, model)


def found(history: Table, model: Model, many: int) -> Found:
    calls = calls_of(history, model)
    return Search(plan_of(calls), Transitions(model, calls), many).run(endless)


LEGAL = {
    "nothing happened": (register(), []),
    "equal times are concurrent": (register(), ["0 write 0-5 1", "1 read 5-9 = null"]),
    "a moment is long enough": (MUTEX, ["0 acquire 3-3", "0 release 3-3", "1 acquire 3-3"]),
    "an unconfirmed write may be read": (register(), ["0 write 0-1? 1", "1 read 2-3 = 1"]),
    "or not": (register(), ["0 write 0-1? 1", "1 read 2-3 = null"]),
    "or much later": (
        register(),
        ["0 write 0-1? 1", "1 write 2-3 2", "1 read 4-5 = 2", "1 read 6-7 = 1"],
    ),
    "two of them, twice": (
        register(),
        [
            "0 write 0- 1",
            "2 write 0- 1",
            "1 write 1-2 2",
            "1 read 3-4 = 1",
            "1 write 5-6 2",
            "1 read 7-8 = 1",
        ],
    ),
    "an unconfirmed read says nothing": (register(), ["0 write 0-1 1", "1 read 2-3? = 5"]),
    "what failed did not happen": (register(), ["0 write 0-1! 1", "1 read 2-3 = null"]),
    "a later write, read earlier": (
        register(),
        ["0 write 0-9 1", "1 write 0-9 2", "2 read 1-2 = 2", "2 read 3-4 = 1"],
    ),
    "the one that asked first may wait": (
        OWNER_MUTEX,
        ["0 acquire 0-9", "1 acquire 1-2", "1 release 3-4"],
    ),
    "an unconfirmed release let it go": (
        OWNER_MUTEX,
        ["0 acquire 0-1", "0 release 2-3?", "1 acquire 4-5"],
    ),
    "two may enter": (semaphore(2), ["0 acquire 0-1", "1 acquire 2-3"]),
    "a client that may have entered again was not the last to leave": (
        MODELS["reentrant-fenced"],
        ["0 acquire 0-1 token=7", "0 acquire 2-", "0 release 3-4", "0 acquire 5-6 token=7"],
    ),
    "null was read of an empty set": (
        SET,
        ["0 read 0-1 = null", "0 add 2-3 1", "0 read 4-5 = [1]"],
    ),
    "a model leaves out what it does not know": (COUNTER, ["0 write 0-1 5", "0 read 2-3 = 0"]),
}


@pytest.mark.parametrize(("model", "lines"), LEGAL.values(), ids=LEGAL)
def test_it_accepts(model: Model, lines: list[str]) -> None:
    assert search(table(*lines), model).linearizable
    assert brute(table(*lines), model)


ILLEGAL = {
    "what was overwritten": (
        register(),
        ["0 write 0-1 1", "0 write 2-3 2", "3 read 4-5 = 1"],
        "process 3 read 1, but in every order that fits it is 2",
    ),
    "one of two": (
        register(),
        ["0 write 0-4 4", "1 write 0-4 9", "3 read 5-6 = 7"],
        "process 3 read 7, but in every order that fits it is 9 or it is 4",
    ),
    "a value that was never written": (
        register(),
        ["0 write 0-1? 1", "1 read 2-3 = 2"],
        "process 1 read 2, but in every order that fits it is null or it is 1",
    ),
    "true is not 1": (
        register(),
        ["0 write 0-1 1", "1 read 2-3 = true"],
        "process 1 read true, but in every order that fits it is 1",
    ),
    "an unconfirmed write happens once at most": (
        register(),
        ["0 write 0-1? 1", "1 read 2-3 = 1", "1 write 4-5 2", "1 read 6-7 = 1"],
        "process 1 read 1, but in every order that fits it is 2",
    ),
    "two at once": (
        OWNER_MUTEX,
        ["7 acquire 0-1", "8 acquire 2-3"],
        "process 8 acquired it, but in every order that fits process 7 holds it",
    ),
    "released by another client": (
        OWNER_MUTEX,
        ["7 acquire 0-1", "8 release 2-3"],
        "process 8 released it, but in every order that fits process 7 holds it",
    ),
    "a third": (
        semaphore(2),
        ["0 acquire 0-1", "1 acquire 2-3", "2 acquire 4-5"],
        "process 2 acquired it, but in every order that fits all 2 permits are held",
    ),
    "a token again": (
        FENCED,
        ["0 acquire 0-1 token=5", "0 release 2-3", "1 acquire 4-5 token=5"],
        (
            "process 1 acquired it with token 5, "
            "but in every order that fits token 5 was granted before"
        ),
    ),
    "an element is missing": (
        SET,
        ["0 add 0-1 1", "0 add 2-3 2", "0 read 4-5 = [2]"],
        "process 0 read [2], but in every order that fits it was read without [1]",
    ),
    "any of many": (
        COUNTER,
        [f"{i} add 0-9? {1 << i}" for i in range(3)] + ["8 read 10-11 = 9"],
        "process 8 read 9, but in every order that fits it is 0 or it is 1 or it is 2 or another",
    ),
}


@pytest.mark.parametrize(("model", "lines", "reason"), ILLEGAL.values(), ids=ILLEGAL)
def test_it_refuses(model: Model, lines: list[str], reason: str) -> None:
    answer = search(table(*lines), model)
    assert answer.linearizable is False
    assert answer.reason == reason
    assert_stands(answer, table(*lines), model)


def test_what_ran_then_is_named_in_order() -> None:
    answer = search(
        table("0 write 0-1 1", "1 write 2-9 2", "2 read 3-7 = 5", "3 write 8-9 4"), register()
    )
    assert (answer.rows, answer.stuck_on, answer.prefix) == ((1, 2), 2, (0, 1))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (Call(Op.WRITE, argument="a"), 'wrote "a"'),
        (Call(Op.CAS, argument=1, second=2), "replaced 1 by 2"),
        (Call(Op.RENEW), "renewed it"),
        (Call(Op.ADD, argument=3), "added 3"),
        (Call(Op.RUN, argument=3), "ran 3"),
    ],
)
def test_every_operation_has_words(call: Call, words: str) -> None:
    assert search_evidence.done_words(call) == words


def test_without_patience_it_reports_how_far_it_came() -> None:
    answer = search(hard(), register(), Patience(iter((True, False)).__next__))
    assert answer.linearizable is None
    assert answer.reason == "it was stopped when 3 of 19 answers were explained"


def test_it_asks_for_patience_again_and_again() -> None:
    asked: list[bool] = []

    def patience() -> bool:
        asked.append(True)
        return len(asked) < 3

    assert search(hard(), register(), Patience(patience)).linearizable is None
    assert len(asked) == 3


def hard() -> Table:
    """A history with so many orders of writes that it takes long to see that none fits."""
    steps = (PATIENCE_EVERY * 4).bit_length()
    writes = [f"{i} write 10-99 {i}" for i in range(steps)]
    return table(*(f"0 write {i}-{i} 0" for i in range(3)), *writes, "99 read 11-50 = 99")


def test_without_memory_it_reports_how_far_it_came() -> None:
    calls = calls_of(hard(), register())
    short = Search(plan_of(calls), Transitions(register(), calls))
    assert short.run(Patience(most_bytes=100 * BYTES)) == Found(
        linearizable=None, place=3, exhausted=True
    )


def test_a_client_may_have_entered_as_often_as_it_matters() -> None:
    """Otherwise every possible set of levels counts, with leases that may have ended or not."""
    model = either(leased(MODELS["reentrant"]))
    asked = table(*(f"{i % 2} acquire 0-" for i in range(40)), "9 release 5-6")
    calls = calls_of(asked, model, np.full(len(asked), NEVER))
    short = Search(plan_of(calls), Transitions(model, calls))
    assert short.run(Patience(most_bytes=100 * BYTES)).linearizable is False
