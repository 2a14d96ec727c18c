"""What each object allows, one operation after another, and how a table's rows become calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker.linearizability.calls import LOOKS, calls_of
from lockcheck.checker.linearizability.models import (
    MODELS,
    MUTEX,
    SET,
    Call,
    Illegal,
    Model,
    State,
    register,
    semaphore,
    value_words,
)
from lockcheck.history.table import Op
from tests.checker.dsl import in_turn, ns, table
from tests.checker.linearizability.generated import histories

# One after another; the last is refused where there is a reason for it.
STORIES: list[tuple[str, str, str]] = [
    ("mutex", "0 acquire, 1 release, 1 acquire", ""),
    ("mutex", "0 acquire, 1 acquire", "all 1 permits are held"),
    ("mutex", "0 release", "nobody holds it"),
    ("mutex", "0 renew", "nobody holds it"),
    ("semaphore", "0 acquire, 1 acquire, 2 renew, 0 release, 2 acquire", ""),
    ("semaphore", "0 acquire, 0 acquire, 0 acquire", "all 2 permits are held"),
    ("owner-mutex", "0 acquire, 0 renew, 0 release, 1 acquire", ""),
    ("owner-mutex", "0 acquire, 0 acquire", "process 0 holds it"),
    ("owner-mutex", "0 acquire, 1 release", "process 0 holds it"),
    ("owner-mutex", "0 acquire, 1 renew", "process 0 holds it"),
    ("owner-mutex", "0 acquire, 0 release, 0 release", "nobody holds it"),
    ("reentrant", "0 acquire, 0 acquire, 0 release, 0 release, 1 acquire", ""),
    ("reentrant", "0 acquire, 0 acquire, 0 release, 1 acquire", "process 0 holds it"),
    ("reentrant", "0 acquire, 0 release, 0 release", "nobody holds it"),
    ("reentrant", "0 acquire, 1 renew", "process 0 holds it"),
    ("fenced", "0 acquire token=3, 0 renew, 0 release, 1 acquire token=4", ""),
    ("fenced", "0 acquire token=-3, 0 release, 1 acquire token=-2", ""),
    ("fenced", "0 acquire token=3, 0 release, 1 acquire token=3", "token 3 was granted before"),
    ("fenced", "0 acquire token=3, 0 acquire token=4", "the caller holds it already"),
    ("fenced", "0 acquire token=3, 1 acquire token=4", "process 0 holds it"),
    ("fenced", "0 acquire, 0 release, 1 acquire token=3", ""),
    (
        "fenced",
        "0 acquire token=3, 0 release, 1 acquire, 1 release, 0 acquire token=4",
        "token 4 was granted before",
    ),
    ("fenced", "0 acquire token=3, 0 release, 1 acquire, 1 release, 0 acquire token=5", ""),
    ("reentrant-fenced", "0 acquire token=3, 0 acquire token=3, 0 acquire", ""),
    (
        "reentrant-fenced",
        "0 acquire token=3, 0 acquire token=4",
        "the token of this hold is 3",
    ),
    ("reentrant-fenced", "0 acquire, 0 acquire token=7, 0 acquire token=7", ""),
    ("reentrant-fenced", "0 acquire, 0 acquire token=7, 0 acquire token=8", "this hold is 7"),
    (
        "reentrant-fenced",
        "0 acquire token=5, 0 release, 0 acquire, 0 acquire token=5",
        "the token of this hold is 6 or higher",
    ),
    ("reentrant-fenced", "0 acquire token=5, 0 release, 0 acquire, 0 acquire token=9", ""),
    (
        "reentrant-fenced",
        "0 acquire, 0 acquire token=7, 0 release, 0 release, 1 acquire token=7",
        "token 7 was granted before",
    ),
    ("register", "0 read = null, 0 write 1, 1 read = 1", ""),
    ("register", '0 write "a", 1 read = "b"', 'it is "a"'),
    ("register", "0 write true, 1 read = 1", "it is true"),
    ("cas-register", "0 write 1, 0 cas [1,2], 1 read = 2, 1 cas [2,2]", ""),
    ("cas-register", "0 write 1, 0 cas [2,3]", "it is 1"),
    ("cas-register", "0 cas [null,2], 0 read = null", "it is 2"),
    ("set", "0 read = [], 0 add 2, 0 add 1, 0 add 1, 1 read = [2,1]", ""),
    ("set", '0 add 1, 0 add true, 1 read = ["1"]', 'without [1, true] and it was read with ["1"]'),
    ("set", "0 read = 3", "it holds a set"),
    ("counter", "0 add 2, 0 add -3, 0 read = -1", ""),
    ("counter", "0 add 2, 0 read = null", "it is 2"),
    ("counter", "0 add 1.5", "no number"),
]


@pytest.mark.parametrize(("name", "story", "reason"), STORIES)
def test_a_story(name: str, story: str, reason: str) -> None:
    calls = calls_of(in_turn(story), MODELS[name])
    *before, last = map(calls.call, range(len(calls)))
    state = MODELS[name].initial
    for call in before:
        state = legal(MODELS[name], state, call)
    after = MODELS[name].step(state, last)
    assert isinstance(after, Illegal) == bool(reason)
    if isinstance(after, Illegal):
        assert reason in after.reason


def legal(model: Model, state: State, call: Call) -> State:
    after = model.step(state, call)
    assert not isinstance(after, Illegal), after.reason
    return after


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
@given(data=st.data())
def test_what_only_looks_changes_nothing(model: Model, data: st.DataObject) -> None:
    """The engines rely on it."""
    calls = calls_of(data.draw(histories(model)), model)
    state = model.initial
    for index in range(len(calls)):
        call = calls.call(index)
        after = model.step(state, call)
        if isinstance(after, Illegal):
            continue
        assert after == state or call.f not in LOOKS
        state = after


def test_a_mutex_is_a_semaphore_of_one() -> None:
    assert (MUTEX.name, semaphore(3).name) == ("mutex", "semaphore")
    assert all(name == model.name for name, model in MODELS.items())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (3, "3"),
        ("a", '"a"'),
        ((b'{"a":1}',), '{"a":1}'),
        (frozenset({2, 1}), "[1, 2]"),
    ],
)
def test_values_are_shown_as_json(value: object, text: str) -> None:
    assert value_words(value) == text


class TestCalls:
    def test_equal_ones_are_one_class(self) -> None:
        calls = calls_of(
            table("0 write 0-1 5", "1 write 2-3 5", "1 write 4-5? 5", "0 read 6-7 = 5"), register()
        )
        assert calls.kind.tolist() == [0, 0, 1, 2]
        assert calls.classes == (
            Call(Op.WRITE, argument=5),
            Call(Op.WRITE, argument=5, confirmed=False),
            Call(Op.READ, result=5),
        )

    def test_what_leaves_no_trace_is_left_out(self) -> None:
        calls = calls_of(
            table(
                "0 write 0-1! 5", "0 read 2-3? = 5", "0 read 4-", "0 acquire 6-7", "0 read 8-9 = 1"
            ),
            register(),
        )
        assert calls.rows.tolist() == [4]

    def test_who_called_matters_only_to_some(self) -> None:
        lines = table("0 acquire 0-1 token=1", "1 acquire 2-3 token=2")
        assert len(calls_of(lines, MUTEX).classes) == 1
        fenced = calls_of(lines, MODELS["fenced"])
        assert [(call.process, call.token) for call in fenced.classes] == [(0, 1), (1, 2)]

    def test_a_token_that_was_not_confirmed_is_none(self) -> None:
        calls = calls_of(table("0 acquire 0-1? token=1"), MODELS["fenced"])
        assert calls.call(0).token is None

    def test_what_a_set_holds_compares_as_json(self) -> None:
        calls = calls_of(table("0 add 0-1 true", "0 add 2-3 1", "0 read 4-5 = [true,1.0]"), SET)
        assert calls.call(2).result == frozenset({calls.call(0).argument, (b"1.0",)})

    def test_they_are_in_the_order_of_their_invocations(self) -> None:
        calls = calls_of(table("0 write 5-6 1", "0 write 1-2 2", "0 write 5-5 3"), register())
        assert calls.start.tolist() == [ns(1), ns(5), ns(5)]
        assert [calls.call(i).argument for i in range(3)] == [2, 1, 3]
