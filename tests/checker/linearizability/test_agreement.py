"""The engines answer as the brute force over all orders does, on small histories of every kind:
whatever the lock, with leases and without, and nothing is left undecided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker.linearizability.decide import decide
from lockcheck.checker.linearizability.models import Model
from tests.checker.linearizability.agreement import LOCKS, compared
from tests.checker.linearizability.brute import brute
from tests.checker.linearizability.brute_leases import brute_with_leases
from tests.checker.linearizability.generated import histories
from tests.checker.linearizability.locks import small
from tests.often import often

SEEDS = 300
each_lock = pytest.mark.parametrize("model", LOCKS.values(), ids=LOCKS)


@pytest.mark.parametrize("leases", [False, True])
@each_lock
def test_as_all_orders_do(model: Model, leases: bool) -> None:
    answers, wrong = compared(model, range(SEEDS), leases=leases)
    assert wrong == []
    assert set(answers) == {(True, True), (False, False)}
    assert min(answers.values()) > SEEDS // 8


@each_lock
@often
@given(data=st.data())
def test_clients_in_sequence(model: Model, data: st.DataObject) -> None:
    table, _ = data.draw(small())
    assert decide(table, model).linearizable is brute(table, model)


@each_lock
@often
@given(data=st.data())
def test_whatever_clients_do(model: Model, data: st.DataObject) -> None:
    table = data.draw(histories(model))
    assert decide(table, model).linearizable is brute(table, model)


@each_lock
@often
@given(data=st.data())
def test_leases(model: Model, data: st.DataObject) -> None:
    table, until = data.draw(small(most=6, leases=True))
    expected = brute_with_leases(table, model, until)
    assert decide(table, model, until).linearizable is expected
