"""One call for all engines: which is asked, what is made of leases; rows keep their names."""

from __future__ import annotations

import importlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockcheck.checker.linearizability.answer import Answer, Patience
from lockcheck.checker.linearizability.decide import Decision, decide
from lockcheck.checker.linearizability.models import (
    COUNTER,
    LOCKING,
    MODELS,
    OWNER_MUTEX,
    Call,
    Illegal,
    Model,
    State,
)
from lockcheck.history.table import NOTHING, Op, Table
from tests.checker.dsl import leased, table
from tests.checker.linearizability.brute import brute
from tests.checker.linearizability.evidence import assert_stands
from tests.checker.linearizability.generated import histories

REGISTER = MODELS["register"]

ENGINES = [
    (OWNER_MUTEX, "0 acquire 1-2", {"sweep": 1}),
    (MODELS["mutex"], "0 acquire 1-2 \n 1 release 3-4", {"sweep": 1}),
    (MODELS["cas-register"], "0 write 1-2 5 \n 1 cas 3-4 [5,6]", {"zones": 1}),
    (REGISTER, "0 write 1-2 5 \n 1 read 3-4 = 5", {"zones": 1}),
    (REGISTER, "0 write 1-2 5 \n 0 write 3-4 6 \n 0 write 5-6 5 \n 1 read 7-8 = 5", {"search": 1}),
    (COUNTER, "0 add 1-2 5 \n 1 read 3-4 = 5", {"search": 1}),
    (OWNER_MUTEX, "", {}),
]


def test_a_model_that_no_fast_engine_knows_is_searched() -> None:
    """Two may hold it at once, though its operations are those of a lock with one owner."""

    def step(owners: State, call: Call) -> State | Illegal:
        assert isinstance(owners, frozenset)
        if call.f is Op.ACQUIRE:
            full = call.process in owners or len(owners) == 2
            return Illegal("no room") if full else owners | {call.process}
        return owners - {call.process} if call.process in owners else Illegal("not the caller's")

    pair = Model("pair", "two may hold it", frozenset(), step, LOCKING, owners=True)
    rows = decide(table("0 acquire 1-2 \n 1 acquire 3-4 \n 0 release 5-6"), pair)
    assert (rows.linearizable, rows.engines) == (True, {"search": 1})
    assert decide(table("0 acquire 1-2 \n 1 release 3-4"), pair).linearizable is False


@pytest.mark.parametrize(("model", "lines", "engines"), ENGINES)
def test_the_fastest_engine_that_can_tell(
    model: Model, lines: str, engines: dict[str, int]
) -> None:
    decision = decide(table(lines), model)
    assert decision.linearizable is True
    assert decision.objects == sum(engines.values())
    assert decision.engines == engines


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
@settings(max_examples=20)  # each of the engines is held to that much more often
@given(data=st.data())
def test_it_answers_as_all_orders_do(model: Model, data: st.DataObject) -> None:
    rows = data.draw(histories(model))
    assert decide(rows, model).linearizable is brute(rows, model)


def test_what_the_model_knows_nothing_of_is_left_out_and_rows_keep_their_names() -> None:
    """By the search, whose evidence names most rows."""
    rows = table(
        """
        9 acquire 0-1
        0 add 2-3 1
        9 release 4-5
        1 read 6-7 = 1
        9 acquire 8-9
        2 read 10-11 = 4"""
    )
    decision = decide(rows, COUNTER)
    (answer,) = decision.answers.values()
    assert decision.linearizable is False
    assert (answer.prefix, answer.stuck_on) == ((1, 3), 5)
    assert_stands(answer, rows, COUNTER)


def test_a_circle_keeps_the_names_of_its_rows() -> None:
    rows = table(
        """
        9 acquire 0-1
        0 write 2-3 5
        0 write 4-5 6
        9 release 6-7
        1 read 8-9 = 5"""
    )
    decision = decide(rows, REGISTER)
    (answer,) = decision.answers.values()
    assert {row for link in answer.cycle for row in (link.before, link.after)} <= {1, 2, 4}
    assert {1, 2, 4} >= set(answer.rows) >= {2, 4}


def test_one_that_cannot_be_told_beside_one_that_is_wrong() -> None:
    """Wrong beats unknown, and unknown beats right."""
    rows = table("0 add 1-2 5 \n 1 read 3-4 = 5")
    patient = decide(rows, COUNTER, patience=Patience(lambda: False))
    assert patient.linearizable in {None, True}
    unknown, wrong = Answer(None, "search", "x"), Answer(False, "search", "y")
    for answers, linearizable in (
        ({1: unknown}, None),
        ({1: unknown, 2: wrong}, False),
        ({1: wrong}, False),
        ({}, True),
    ):
        assert Decision(COUNTER, 3, {}, answers).linearizable is linearizable


# --- leases where the search has to be asked -----------------------------------------------------


@pytest.fixture
def unswept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep leaves it to the search."""
    module = importlib.import_module(decide.__module__)  # its name is that of the function, too
    monkeypatch.setattr(module, "sweep", lambda *_: {NOTHING: Answer(None, "sweep")})


LEASES = [
    ("0 acquire 1-2 until=8 \n 1 acquire 3-9", True),  # the lease has run out
    ("0 acquire 1-2 until=9 \n 1 acquire 3-9", True),  # at that very moment
    ("0 acquire 1-2 until=10 \n 1 acquire 3-9", False),
    ("0 acquire 1-2 \n 1 acquire 3-9", False),
    ("0 acquire 1-2 until=8 \n 0 renew 4-5 until=20 \n 1 acquire 6-9", False),  # put off
    ("0 acquire 1-2 until=8 \n 0 renew 4-5 until=9 \n 1 acquire 6-9", True),
    ("0 acquire 1-2 until=8 \n 0 renew 4-5! until=20 \n 1 acquire 6-9", True),
    ("0 acquire 1-2 until=18 \n 0 renew 4-5 until=9 \n 1 acquire 6-19", True),  # not shortened
    ("0 acquire 1-2 until=18 \n 0 renew 4-5 until=8 \n 1 acquire 6-9", False),
    ("0 acquire 1-2 until=8 \n 2 renew 4-5 until=20 \n 1 acquire 6-9", False),  # another's
    ("0 acquire 1-2 until=50 \n 0 release 4-5 \n 1 acquire 6-9", True),
    ("0 acquire 1-2? until=2 \n 1 acquire 3-9 until=90 \n 2 acquire 4-10 until=90", False),
    ("0 acquire 1-2! until=2 \n 1 acquire 3-9 until=90 \n 2 acquire 4-10 until=90", False),
]


@pytest.mark.parametrize(("lines", "linearizable"), LEASES)
def test_leases_that_run_out(unswept: None, lines: str, linearizable: bool) -> None:
    rows, ends = leased(lines)
    decision = decide(rows, OWNER_MUTEX, ends)
    assert decision.linearizable is linearizable
    for answer in decision.answers.values():
        assert answer.reason
        assert set(answer.rows) | set(answer.prefix) <= set(range(len(rows)))


COUNTED = {
    "a lease ends with its release": (
        MODELS["mutex"],
        (
            "0 acquire 0-1 until=10 \n 0 release 2-3 \n 0 acquire 4-5 until=14 \n 0 release 6-7 \n "
            "1 acquire 20-21 until=30 \n 2 acquire 22-23 until=32 \n 2 release 24-25"
        ),
        False,
    ),
    "of several permits, too": (
        MODELS["semaphore"],
        (
            "0 acquire 0-1 until=10 \n 0 release 2-3 \n 1 acquire 20-21 until=30 \n "
            "2 acquire 22-23 until=32 \n 3 acquire 24-25 until=34"
        ),
        False,
    ),
    "or by itself": (
        MODELS["semaphore"],
        "0 acquire 0-1 until=10 \n 1 acquire 8-9 until=18 \n 2 acquire 11-12 until=21",
        True,
    ),
    "once": (
        MODELS["semaphore"],
        (
            "0 acquire 0-1 until=10 \n 1 acquire 8-9 until=18 \n 2 acquire 11-12 until=21 \n "
            "3 acquire 13-14 until=23"
        ),
        False,
    ),
    "a renewal puts off that of its client": (
        MODELS["semaphore"],
        (
            "0 acquire 0-1 until=10 \n 1 acquire 2-3 until=20 \n 0 renew 4-5 until=14 \n "
            "2 acquire 11-12 until=21"
        ),
        False,
    ),
    "and no other": (
        MODELS["semaphore"],
        (
            "0 acquire 0-1 until=10 \n 1 acquire 2-3 until=20 \n 1 renew 4-5 until=24 \n "
            "2 acquire 11-12 until=21"
        ),
        True,
    ),
    "one that ended by itself may be any client's": (
        MODELS["mutex"],
        (
            "0 acquire 0-1 until=10 \n 1 acquire 11-12 until=21 \n 0 release 13-14 \n "
            "2 acquire 15-16 until=25"
        ),
        True,
    ),
}


@pytest.mark.parametrize(("model", "lines", "linearizable"), COUNTED.values(), ids=COUNTED)
def test_leases_of_locks_that_count(model: Model, lines: str, linearizable: bool) -> None:
    rows, ends = leased(lines)
    decision = decide(rows, model, ends)
    assert decision.linearizable is linearizable
    assert all(answer.rows for answer in decision.answers.values())


def test_operations_of_one_client_in_one_instant_can_have_come_in_another_order() -> None:
    rows, ends = leased(
        "0 acquire 4-8 until=10 \n 0 release 8-8 \n 0 acquire 8-8 until=14 \n 0 release 9-10",
        "0 acquire 10-11 until=16 \n 1 acquire 12-13 until=18 \n 1 release 19-22",
    )
    assert decide(rows, OWNER_MUTEX, ends).linearizable is True


def test_the_evidence_beside_leases_names_no_end_of_one(unswept: None) -> None:
    rows, ends = leased(
        "9 read 0-0 \n 0 acquire 1-2 until=8 \n 1 acquire 3-9 until=90 \n 2 acquire 4-10 until=90"
    )
    (answer,) = decide(rows, OWNER_MUTEX, ends).answers.values()
    assert answer.linearizable is False
    assert answer.stuck_on in {2, 3}
    assert set(answer.prefix) <= {1, 2, 3}
    assert len(answer.prefix) == 2


def test_objects_apart_are_counted_apart() -> None:
    one, other = table("0 acquire 1-2 \n 1 acquire 3-4"), table("0 acquire 1-2")
    one.key[:] = (NOTHING, 0)
    decision = decide(one, OWNER_MUTEX)
    assert (decision.objects, decision.linearizable) == (2, True)
    assert decide(other, OWNER_MUTEX).objects == 1


def test_nobody_is_accused_by_operations_that_touch_before_all_orders_were_tried() -> None:
    """Where a client begins in the instant in which it ended, a sweep may overlook an order."""
    touching = table(
        "1 acquire 1-?",
        "1 release 3-6",
        "0 acquire 5-5",
        "1 acquire 6-7",
        "0 release 7-?",
        "1 release 7-8",
        "0 acquire 8-8 token=3",
        "0 release 8-9",
        "0 acquire 9-12 token=3",
    )
    model = MODELS["reentrant-fenced"]
    assert brute(touching, model)
    assert decide(touching, model).linearizable is True


@given(histories(MODELS["reentrant-fenced"]))
def test_it_agrees_with_all_orders(what: Table) -> None:
    model = MODELS["reentrant-fenced"]
    assert decide(what, model).linearizable is brute(what, model)
