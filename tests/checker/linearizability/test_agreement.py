"""The engines answer as the brute force over all orders does, on small histories of every kind:
whatever the lock, with leases and without, and nothing is left undecided."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker.linearizability.decide import decide
from lockcheck.checker.linearizability.models import Model
from lockcheck.history.table import Table
from tests.checker.linearizability.agreement import LOCKS, by_all_orders, compared
from tests.checker.linearizability.drawn import some_either, some_shared
from tests.checker.linearizability.generated import histories
from tests.checker.linearizability.locks import small
from tests.often import often

SEEDS = 300
each_lock = pytest.mark.parametrize("model", LOCKS.values(), ids=LOCKS)


def either_and_shared(table: Table, model: Model, data: st.DataObject) -> Table:
    random = Random(data.draw(st.integers(0, 1 << 32)))
    table = some_either(random, table)
    return some_shared(random, table) if model.name == "shared" else table


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
    table = either_and_shared(table, model, data)
    assert decide(table, model).linearizable is by_all_orders(table, model, None)


@each_lock
@often
@given(data=st.data())
def test_whatever_clients_do(model: Model, data: st.DataObject) -> None:
    table = either_and_shared(data.draw(histories(model)), model, data)
    assert decide(table, model).linearizable is by_all_orders(table, model, None)


@each_lock
@often
@given(data=st.data())
def test_leases(model: Model, data: st.DataObject) -> None:
    table, until = data.draw(small(most=6, leases=True))
    table = either_and_shared(table, model, data)
    expected = by_all_orders(table, model, until)
    assert decide(table, model, until).linearizable is expected
