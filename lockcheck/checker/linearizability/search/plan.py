"""The input of a search: the returns in their order, and the calls before each.

A confirmed operation is named by the place of its return among all returns: operation 0 returns
first. So the operations that have yet to return at place `p` have the names `p` and above.

An operation may have to come after others that return when it is called: those of its own client
(`own_order`). Their names are lower than its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lockcheck.checker.linearizability.calls import LOOKS, Calls
from lockcheck.checker.linearizability.models import Illegal, Model, Rank, State
from lockcheck.history.table import Ints

Int32s = NDArray[np.int32]
ILLEGAL = -1
NONE = -1
LAPSE = -1  # where a class is asked for: the end of a lease


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Columns of each return, in order: *; of each call, in order: **."""

    kind: Int32s  # * the class of its operation
    slot: Int32s  # * its bit in the masks; reused once it has returned
    twin: (
        Int32s  # * the equal operation that returns last before it, or NONE; the two can be swapped
    )
    called: Int32s  # * the number of calls by then
    time: Ints  # * its time
    calls: Int32s  # ** the name of the operation; -1 - u for one of `maybe` class u
    looks: NDArray[np.int8]  # of each class: it never changes the state
    maybe: Int32s  # the classes of operations that may or may not have taken effect
    first: Int32s  # where in `earlier` begins what comes before: each return, then each of `maybe`
    earlier: Int32s  # names
    returns: NDArray[np.intp]  # * its index in the `Calls`
    slots: int


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search."""

    linearizable: bool | None
    place: int  # the furthest return that was reached
    path: tuple[tuple[int, int], ...] = ()  # to there: (what took effect, before which return)
    states: tuple[int, ...] = ()  # the possible states there
    exhausted: bool = False  # it ended for lack of memory, not of patience


def plan_of(calls: Calls) -> SearchPlan:
    confirmed = np.array([call.confirmed for call in calls.classes], dtype=bool)
    happened = confirmed[calls.kind]
    returning = np.flatnonzero(happened)
    # Intervals are closed: at equal times all calls are before all returns.
    returns = returning[np.argsort(calls.end[returning], kind="stable")]
    called = np.searchsorted(calls.start, calls.end[returns], side="right").astype(np.int32)
    names = np.empty(len(calls), dtype=np.int32)
    names[returns] = np.arange(len(returns))
    before, after = calls.touching
    # One that has to wait for others is not interchangeable, nor one that others wait for.
    apart = np.zeros(len(calls), dtype=np.int64)
    apart[after] = 1 + after
    width = len(calls) + 1
    alike = calls.kind[~happened] * np.int64(width) + apart[~happened]
    alike, number = np.unique(alike, return_inverse=True)
    maybe = alike // width
    names[~happened] = -1 - number
    apart[before] = 1 + before
    slot, slots = _slots(names.tolist(), called.tolist())
    kind = calls.kind[returns].astype(np.int32)
    looks = [call.f in LOOKS and call.until is None for call in calls.classes]
    return SearchPlan(
        kind,
        slot,
        _twins(kind, apart[returns]),
        called,
        calls.end[returns],
        names,
        np.array(looks, dtype=np.int8),
        maybe.astype(np.int32),
        *_earlier(names[before], names[after], len(returns), len(maybe)),
        returns,
        slots,
    )


def _slots(calls: list[int], called: list[int]) -> tuple[Int32s, int]:
    """The lowest free slot for each: there are as many as operations ever ran at once."""
    slot = np.zeros(len(called), dtype=np.int32)
    free: list[int] = []
    used = seen = 0
    for place, until in enumerate(called):
        for name in calls[seen:until]:
            if name >= 0 and free:
                slot[name] = heapq.heappop(free)
            elif name >= 0:
                slot[name] = used
                used += 1
        seen = until
        heapq.heappush(free, int(slot[place]))
    return slot, used


def _earlier(before: Int32s, after: Int32s, returns: int, maybes: int) -> tuple[Int32s, Int32s]:
    after = np.where(after < 0, returns - 1 - after, after)
    order = np.argsort(after, kind="stable")
    first = np.searchsorted(after[order], np.arange(returns + maybes + 1))
    return first.astype(np.int32), before[order].astype(np.int32)


def _twins(kind: Int32s, apart: Ints) -> Int32s:
    twin = np.full(len(kind), NONE, dtype=np.int32)
    order = np.argsort(kind, kind="stable")
    order = order[apart[order] == 0]
    same = kind[order[1:]] == kind[order[:-1]]
    twin[order[1:][same]] = order[:-1][same]
    return twin


class Transitions:
    """The model as a table, filled on demand: states, classes and `Rank.alike` are numbers."""

    def __init__(self, model: Model, calls: Calls) -> None:
        self.states: list[State] = []
        self.ranks: list[tuple[int, int, int]] = []
        self.model = model
        self.classes = calls.classes
        self._numbers: dict[State, int] = {}
        self._alike: dict[Hashable, int] = {}
        self.number(model.initial)

    def step(self, kind: int, state: int) -> int:
        """The number of the next state, or ILLEGAL."""
        if kind == LAPSE:
            assert self.model.lapse is not None  # noqa: S101 - called only if it can lapse
            return self.number(self.model.lapse(self.states[state]))
        after = self.model.step(self.states[state], self.classes[kind])
        return ILLEGAL if isinstance(after, Illegal) else self.number(after)

    def number(self, state: State) -> int:
        number = self._numbers.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
            rank = self.model.rank(state) if self.model.rank else Rank(state)
            alike = self._alike.setdefault(rank.alike, len(self._alike))
            self.ranks.append((alike, rank.token, rank.promised))
        return number

    def why_not(self, kind: int, state: int) -> str:
        after = self.model.step(self.states[state], self.classes[kind])
        return after.reason if isinstance(after, Illegal) else ""
