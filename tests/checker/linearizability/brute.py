"""Decides by the definition alone whether there is an order, by trying all of them: for small
histories.

An order contains every confirmed operation once, some of the others at most once, never an
operation before one that had ended when it began, and is legal for the model. What may have done
nothing may be left out, too.
"""

from __future__ import annotations

from functools import cache

from lockcheck.checker.linearizability.calls import calls_of
from lockcheck.checker.linearizability.models import Call, Illegal, Model, State
from lockcheck.history.table import Table

Timed = tuple[int, int, Call]  # start, end, what


def brute(what: Table | list[Timed], model: Model) -> bool:
    todo = timed(what, model) if isinstance(what, Table) else what

    @cache
    def possible(state: State, left: frozenset[int]) -> bool:
        """Whether an order of what is left goes on from this state."""
        if not any(todo[i][2].confirmed for i in left):
            return True
        return any(_next_is(state, left, i) for i in left)

    def _next_is(state: State, left: frozenset[int], i: int) -> bool:
        start, _, call = todo[i]
        if any(todo[j][1] < start and todo[j][2].confirmed for j in left):
            return False  # that one has to come first
        if call.either and possible(state, left - {i}):
            return True
        after = model.step(state, call._replace(confirmed=True))  # else it need not be legal early
        return not isinstance(after, Illegal) and possible(after, left - {i})

    return possible(model.initial, frozenset(range(len(todo))))


def timed(table: Table, model: Model) -> list[Timed]:
    calls = calls_of(table, model)
    spans = zip(calls.start.tolist(), calls.end.tolist(), strict=True)
    return [(start, end, calls.call(i)) for i, (start, end) in enumerate(spans)]
