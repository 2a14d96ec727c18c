"""A client's own order, where its operations touch: the engines answer as the brute force does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker.linearizability.calls import calls_of
from lockcheck.checker.linearizability.decide import decide
from lockcheck.checker.linearizability.models import MODELS, Model, semaphore
from lockcheck.checker.linearizability.own_order import in_own_order, in_turn, touching
from lockcheck.checker.linearizability.search.search import search
from lockcheck.checker.linearizability.turns import circle_of
from lockcheck.checker.linearizability.zones import zones
from lockcheck.history.table import NEVER, NOTHING, Table
from lockcheck.native import PURE
from tests.checker.dsl import table
from tests.checker.linearizability.agreement import COMPARED, compared, in_sequence
from tests.checker.linearizability.brute import brute, own_orders
from tests.checker.linearizability.evidence import assert_stands
from tests.checker.linearizability.generated import histories
from tests.checker.linearizability.proofs import Proof
from tests.often import often

REGISTER = MODELS["cas-register"]
WITHOUT_OWNERS = [MODELS[name] for name in ("register", "cas-register", "set", "counter", "mutex")]
each_reading = pytest.mark.parametrize("events", [True, False], ids=["events", "rows"])


def one_at_a_time(history: Table) -> Table:
    """The same operations by clients of which each does one after the other."""
    free_at: list[int] = []
    process = np.zeros(len(history), np.int32)
    for row, (start, end) in enumerate(zip(history.start, history.end, strict=True)):
        free = (client for client, at in enumerate(free_at) if at <= start)
        process[row] = client = next(free, len(free_at))
        free_at[client:] = [int(start if end == NEVER else end), *free_at[client + 1 :]]
    symbols = [history.symbols.number(client) for client in range(len(free_at) or 1)]
    process = np.array(symbols, np.int32)[process]
    return replace(history, process=process, owner=process)


def decided(history: Table, model: Model, *, events: bool) -> bool | None:
    return decide(in_turn(history, events=events), model).linearizable


REJECTED = {
    "a stale read": "0 write 0-1 1\n0 write 1-2 2\n0 read 2-3 = 1\n1 read 4-5 = 2",
    "a read before its own write": "0 read 1-2 = 5\n0 write 2-3 5",
    "a read before its own unconfirmed write": "0 read 1-2 = 5\n0 write 2- 5\n1 read 3-4 = 5",
    "a read of the initial value": "0 write 1-2 5\n0 read 2-3 = null",
    "a stale read that took no time": (
        "0 write 0-1 1\n0 write 1-2 2\n0 read 2-2 = 1\n1 read 4-5 = 2"
    ),
    "two clients that contradict each other": (
        "0 write 1-2 5\n0 read 2-3 = 6\n1 write 1-2 6\n1 read 2-3 = 5"
    ),
    "three in a circle": (
        "0 write 1-2 5\n0 write 2-3 6\n1 read 1-2 = 6\n1 read 2-3 = 7\n"
        "2 write 0-2 7\n2 read 2-3 = 5"
    ),
    "a cas from what was not there any more": (
        "0 write 0-1 1\n0 write 1-2 2\n0 cas 2-3 [1,3]\n1 read 5-6 = 2"
    ),
}
ACCEPTED = {
    "operations of two clients that touch": (
        "0 write 0-1 1\n1 write 1-2 2\n2 read 2-3 = 1\n1 read 4-5 = 2"
    ),
    "after an unconfirmed one": "0 write 0-1 1\n0 write 1- 2\n0 read 1-3 = 1\n1 read 4-5 = 2",
    "what failed did not happen": "0 write 0-1 1\n0 write 1-2! 2\n0 read 2-3 = 1",
}


@each_reading
@pytest.mark.parametrize("lines", REJECTED.values(), ids=REJECTED)
def test_rejected(lines: str, events: bool) -> None:
    history = table(lines)
    assert decided(history, REGISTER, events=events) is False
    assert not brute(history, REGISTER, own_orders(history, events=events))


def test_times_alone_do_not_reject_them() -> None:
    assert [lines for lines in REJECTED.values() if not zones(table(lines))] == list(
        REJECTED.values()
    )


@each_reading
@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(lines: str, events: bool) -> None:
    assert decided(table(lines), REGISTER, events=events) is True


def test_of_instants_the_order_is_known_in_events_only() -> None:
    history = table("0 write 0-1 1\n0 write 2-2 2\n0 read 2-2 = 1\n1 read 4-5 = 2")
    assert decided(history, REGISTER, events=True) is False
    assert decided(history, REGISTER, events=False) is True
    assert decided(table("0 write 1-1 1\n0 read 1-2 = null"), REGISTER, events=False) is False


def test_a_renewal_in_a_log_of_rows_may_be_a_threads() -> None:
    history = table("0 acquire 0-1\n0 release 1-2\n0 renew 2-3")
    assert decided(history, MODELS["owner-mutex"], events=True) is False
    assert decided(history, MODELS["owner-mutex"], events=False) is True


def test_tokens_grow_in_the_clients_order() -> None:
    lines = "0 acquire 0-1 token=5\n0 release 1-1\n0 acquire 1-1 token=4\n0 release 1-2"
    assert decided(table(lines), MODELS["fenced"], events=True) is False
    assert decide(table(lines), MODELS["fenced"]).linearizable is True


def test_a_permit_is_not_given_back_before_it_is_had() -> None:
    model = semaphore(1)
    history = table("0 acquire 0-1\n1 acquire 2-3\n2 acquire 2-3\n1 release 3-4\n2 release 3-4")
    assert decided(history, model, events=True) is False
    assert decide(history, model).linearizable is True


def test_turns_are_only_given_where_operations_touch() -> None:
    apart = table("0 write 0-1 1\n0 write 2-3 2\n1 write 1-2 3")
    assert in_turn(apart, events=True) is apart
    history = in_turn(
        table("0 write 0-1 1\n0 write 1-1 2\n0 write 1-1 3\n0 write 1-4 4"), events=False
    )
    assert [*zip(*map(list, touching(history)), strict=True)] == [(0, 1), (0, 2), (2, 3), (1, 3)]
    assert in_own_order(history, 0, 1)
    assert not in_own_order(history, 1, 2)
    assert not in_own_order(apart, 0, 1)


def test_a_keeper_has_no_turn_among_its_clients_operations() -> None:
    history = table("0 acquire 0-1", "1 renew 1-2", "0 release 2-3", "0 acquire 3-4")
    history = replace(history, owner=history.process.copy())
    history.owner[1] = history.process[0]
    assert (in_turn(history, events=True).turn == NOTHING).tolist() == [False, True, False, False]


@each_reading
@often
@given(data=st.data())
def test_registers_and_counting_locks(events: bool, data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(WITHOUT_OWNERS))
    history = one_at_a_time(data.draw(histories(model)))
    assert in_sequence(history)
    expected = brute(history, model, own_orders(history, events=events))
    assert decided(history, model, events=events) is expected


@each_reading
@often
@given(data=st.data())
def test_the_search_and_its_evidence(events: bool, data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(WITHOUT_OWNERS))
    history = in_turn(one_at_a_time(data.draw(histories(model))), events=events)
    answer = search(history, model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PURE, "1")
        assert search(history, model) == answer
    assert answer.linearizable is brute(history, model, own_orders(history, events=events))
    if answer.linearizable:
        return
    assert_stands(answer, history, model)
    calls = calls_of(history, model)
    place = {row: at for at, row in enumerate(answer.prefix)}
    for before, after in zip(*(calls.rows[pair].tolist() for pair in calls.touching), strict=True):
        assert after not in place or place[before] < place[after]


@each_reading
@given(data=st.data())
def test_what_zones_explain_is_a_proof(events: bool, data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from([*REJECTED.values()]))
    history = in_turn(table(lines), events=events)
    for answer in zones(history).values():
        Proof(history, NOTHING).check(answer)


def test_registers_from_seeds() -> None:
    answers, wrong = compared(COMPARED["cas-register"], range(1_000), leases=False)
    assert wrong == []
    assert set(answers) == {(True, True), (False, False)}


def test_pieces_in_turn() -> None:
    assert circle_of([], [], []) == []
    assert circle_of([1, 2, 3], [1, 2, 3], []) == []
    assert circle_of([2, 2], [2, 2], [(1, 0, 7, 8)]) == []
    assert circle_of([1, 2], [2, 3], [(1, 0, 7, 8)]) == [(1, 0, 7, 8), (0, 1)]
    assert circle_of([5, 5, 5], [5, 5, 5], [(0, 1), (1, 2)]) == []
    assert sorted(circle_of([5, 5, 5], [5, 5, 5], [(0, 1), (1, 2), (2, 0)])) == [
        (0, 1),
        (1, 2),
        (2, 0),
    ]
