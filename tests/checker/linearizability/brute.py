"""Decides by the definition alone whether there is an order, by trying all of them: for small
histories.

An order contains every confirmed operation once, some of the others at most once, never an
operation before one that had ended when it began, and is legal for the model. What may have done
nothing may be left out, too. Where a client's own operations touch, they keep their order: that of
the rows, if these come from events; or else, as far as times tell.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from lockcheck.checker.linearizability.calls import calls_of
from lockcheck.checker.linearizability.models import Call, Illegal, Model, State
from lockcheck.history.table import Op, Outcome, Table

Timed = tuple[int, int, Call]  # start, end, what
# From rows, by their places, to the places of those that their clients did before.
OwnOrders = Callable[[list[int]], dict[int, frozenset[int]]]


def times_alone(_: list[int]) -> dict[int, frozenset[int]]:
    return {}


def brute(what: Table | list[Timed], model: Model, own: OwnOrders = times_alone) -> bool:
    todo = timed(what, model) if isinstance(what, Table) else what
    before = own(calls_of(what, model).rows.tolist()) if isinstance(what, Table) else {}

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
        if before.get(i, frozenset()) & left:
            return False
        if call.either and possible(state, left - {i}):
            return True
        after = model.step(state, call._replace(confirmed=True))  # else it need not be legal early
        return not isinstance(after, Illegal) and possible(after, left - {i})

    return possible(model.initial, frozenset(range(len(todo))))


def timed(table: Table, model: Model) -> list[Timed]:
    calls = calls_of(table, model)
    spans = zip(calls.start.tolist(), calls.end.tolist(), strict=True)
    return [(start, end, calls.call(i)) for i, (start, end) in enumerate(spans)]


def own_orders(table: Table, *, events: bool) -> OwnOrders:
    """Which operations ended when their client began others. `events`: all are in the order in
    which they happened."""

    def first(one: int, other: int) -> bool:
        sure = table.outcome[one] in (Outcome.OK, Outcome.EITHER)
        keepers = any(table.process[row] != table.owner[row] for row in (one, other))
        same = table.process[one] == table.process[other] and table.key[one] == table.key[other]
        touch = table.end[one] == table.start[other]
        if one == other or keepers or not (same and sure and touch):
            return False
        if events:
            return one < other
        instant = all(table.start[row] == table.end[row] for row in (one, other))
        unconfirmed = table.start[one] == table.end[one] and table.outcome[other] == Outcome.INFO
        renewal = Op.RENEW in (table.f[one], table.f[other])
        return not (instant or renewal or unconfirmed)

    return lambda rows: {
        i: frozenset(j for j, one in enumerate(rows) if first(one, other))
        for i, other in enumerate(rows)
    }
