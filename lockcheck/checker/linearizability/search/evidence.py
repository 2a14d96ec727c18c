"""Explains a failed search: the longest order that was found, and the operation that it cannot get
past."""

from __future__ import annotations

import numpy as np

from lockcheck.checker.linearizability.answer import Answer
from lockcheck.checker.linearizability.calls import Calls
from lockcheck.checker.linearizability.models import Call, value_words
from lockcheck.checker.linearizability.search.plan import (
    ILLEGAL,
    NONE,
    Found,
    SearchPlan,
    Transitions,
)
from lockcheck.history.table import Op, Table

SOME = 3  # states that are named, of all in which the operation does not fit


def answer_from(
    table: Table, calls: Calls, plan: SearchPlan, transitions: Transitions, found: Found
) -> Answer:
    stuck = int(plan.returns[found.place])
    prefix = Replay(calls, plan, transitions).order(found)
    return Answer(
        linearizable=False,
        engine="search",
        reason=_reason(table, calls, stuck, transitions, found),
        rows=tuple(calls.rows[_running(plan, found.place)].tolist()),
        prefix=tuple(calls.rows[prefix].tolist()),
        stuck_on=int(calls.rows[stuck]),
    )


def _running(plan: SearchPlan, place: int) -> list[int]:
    """The confirmed operations that were called by then and had not returned."""
    names = plan.calls[: plan.called[place]]
    return sorted(plan.returns[names[names >= place]].tolist())


def _reason(table: Table, calls: Calls, stuck: int, transitions: Transitions, found: Found) -> str:
    kind = int(calls.kind[stuck])
    reasons = {transitions.why_not(kind, state): None for state in found.states}
    states = [*list(reasons)[:SOME], *(["another"] if len(reasons) > SOME else [])]
    process = table.symbols.value(int(table.process[calls.rows[stuck]]))
    done = done_words(calls.classes[kind])
    return f"process {process} {done}, but in every order that fits {' or '.join(states)}"


def done_words(call: Call) -> str:
    """The operation in words, with its result: `read 3`."""
    token = "" if call.token is None else f" with token {call.token}"
    words = {
        Op.ACQUIRE: f"acquired it{token}",
        Op.RELEASE: "released it",
        Op.RENEW: "renewed it",
        Op.READ: f"read {value_words(call.result)}",
        Op.WRITE: f"wrote {value_words(call.argument)}",
        Op.CAS: f"replaced {value_words(call.argument)} by {value_words(call.second)}",
        Op.ADD: f"added {value_words(call.argument)}",
        Op.RUN: f"ran {value_words(call.argument)}",
        Op.OTHER: "did something else",
    }
    return words[call.f]


class Replay:
    """Rebuilds the order of a path, on which operations that only look are missing."""

    def __init__(self, calls: Calls, plan: SearchPlan, transitions: Transitions) -> None:
        self._calls, self._plan, self._transitions = calls, plan, transitions
        self._maybes = [
            iter(np.flatnonzero(plan.calls == -1 - number).tolist())
            for number in range(len(plan.maybe))
        ]
        self._seen = 0
        self._looks = bool(plan.looks.any())  # otherwise no state is needed
        self._looking: list[int] = []  # names of called ones that only look and did not fit yet
        self._done: set[int] = set()  # names
        self._state = 0
        self._order: list[int] = []

    def order(self, found: Found) -> list[int]:
        for last, place in found.path:
            self._call_until(place)
            self._let(last)
        self._call_until(found.place)
        return self._order

    def _call_until(self, place: int) -> None:
        until = int(self._plan.called[place])
        if not self._looks:
            return
        names = self._plan.calls[self._seen : until].tolist()
        looks = self._plan.looks
        self._looking += [name for name in names if name >= 0 and looks[self._plan.kind[name]]]
        self._seen = max(self._seen, until)
        self._look()

    def _let(self, last: int) -> None:
        maybe = NONE - 1 - last
        if maybe == len(self._maybes):
            return  # with leases no operation only looks
        index = int(self._plan.returns[last]) if last >= 0 else next(self._maybes[maybe])
        self._order.append(index)
        self._done.add(last)
        if self._looks:
            self._state = self._transitions.step(int(self._calls.kind[index]), self._state)
            self._look()

    def _look(self) -> None:
        plan, looking = self._plan, self._looking
        self._looking = []
        for name in looking:
            earlier = plan.earlier[plan.first[name] : plan.first[name + 1]].tolist()
            after = self._transitions.step(int(plan.kind[name]), self._state)
            if after == ILLEGAL or not self._done.issuperset(earlier):
                self._looking.append(name)
                continue
            self._order.append(int(plan.returns[name]))
            self._done.add(name)
