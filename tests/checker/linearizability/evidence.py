"""What the evidence of an engine has to be, whatever it is evidence of."""

from __future__ import annotations

from lockcheck.checker.linearizability.answer import Answer
from lockcheck.checker.linearizability.calls import calls_of
from lockcheck.checker.linearizability.models import Illegal, Model
from lockcheck.history.table import Outcome, Table


def assert_stands(answer: Answer, of: Table, model: Model) -> None:
    """The prefix is an order, it holds all that had to be in it, and the next does not fit."""
    assert answer.stuck_on is not None
    assert answer.stuck_on not in answer.prefix
    assert answer.stuck_on in answer.rows
    assert of.outcome[answer.stuck_on] == Outcome.OK
    assert not isinstance(replayed(answer.prefix, of, model), Illegal)
    assert isinstance(replayed((*answer.prefix, answer.stuck_on), of, model), Illegal)
    assert len(set(answer.prefix)) == len(answer.prefix)
    for place, later in enumerate(answer.prefix):
        assert all(of.end[later] >= of.start[earlier] for earlier in answer.prefix[:place])
    over = (of.end < of.end[answer.stuck_on]) & (of.outcome == Outcome.OK)
    mattering = {row for row in calls_of(of, model).rows.tolist() if over[row]}
    assert mattering <= set(answer.prefix)
    assert list(answer.rows) == sorted(answer.rows)
    assert answer.reason


def replayed(rows: tuple[int, ...], of: Table, model: Model) -> object:
    calls = calls_of(of, model)
    call_of = {row: calls.call(index) for index, row in enumerate(calls.rows.tolist())}
    state: object = model.initial
    for row in rows:
        state = model.step(state, call_of[row])
        if isinstance(state, Illegal):
            break
    return state
