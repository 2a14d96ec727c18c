"""Locks where some operations may have done nothing: the state is the set of all possible states.

A call leads from each possible state in which it is legal to the next one. If it may have done
nothing, the states before it stay possible, too. A lease that may end may also not have ended, so
the state after its end is added; where several may end, the one with the earliest promise is next.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from lockcheck.checker.linearizability.models import Call, Illegal, Model, Rank, State
from lockcheck.history.table import NEVER

States: TypeAlias = frozenset[State]


def either(model: Model) -> Model:
    """The same lock, but calls marked `either` may have done nothing."""

    def step(state: State, call: Call) -> State | Illegal:
        before = _states(state)
        afters = [model.step(each, call) for each in before]
        legal = frozenset(after for after in afters if not isinstance(after, Illegal))
        if call.either:
            legal |= before
        illegal = (after for after in afters if isinstance(after, Illegal))
        return legal or min(illegal, key=lambda each: each.reason)

    own = replace(model, name=f"{model.name}, or nothing", initial=frozenset({model.initial}))
    return _leased(replace(own, step=step, rank=None, lapse=None), model)


def _leased(model: Model, of_one: Model) -> Model:
    end, rank_one = of_one.lapse, of_one.rank
    if end is None or rank_one is None:
        return model

    def ends(states: States) -> list[tuple[int, State]]:
        """From when on a lease may have ended, and what else the state may be then."""
        after = ((rank_one(each).promised, end(each)) for each in states)
        return [(promised, state) for promised, state in after if state not in states]

    def lapse(state: State) -> State:
        after, first = ends(_states(state)), rank(state).promised
        return _states(state) | {each for promised, each in after if promised == first}

    def rank(state: State) -> Rank:
        after = ends(_states(state))
        return Rank(state, promised=min((promised for promised, _ in after), default=NEVER))

    return replace(model, lapse=lapse, rank=rank)


def _states(state: State) -> States:
    assert isinstance(state, frozenset)  # noqa: S101 - the states are this model's own
    return state
