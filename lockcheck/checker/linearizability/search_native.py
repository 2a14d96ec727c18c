"""The general search, in C: it does the same as `search_python`, which says why it is right."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int8, c_int32, c_int64

import numpy as np
from numpy.typing import NDArray

from lockcheck.checker.linearizability.answer import Patience
from lockcheck.checker.linearizability.search_plan import Found, Numbers, Plan, Transitions

STUCK, LINEARIZABLE, IMPATIENT, OUT_OF_MEMORY, RAISED = range(5)
FAILED = -2
ANSWERS = {LINEARIZABLE: True, STUCK: False}

AskModel = ctypes.CFUNCTYPE(c_int32, c_int32, c_int32)
AskPatience = ctypes.CFUNCTYPE(c_int32, c_int32)


class PlanColumns(ctypes.Structure):
    _fields_ = (
        ("returns", c_int32),
        ("calls_count", c_int32),
        ("kinds", c_int32),
        ("maybes", c_int32),
        ("slots", c_int32),
        ("kind", POINTER(c_int32)),
        ("slot", POINTER(c_int32)),
        ("twin", POINTER(c_int32)),
        ("called", POINTER(c_int32)),
        ("calls", POINTER(c_int32)),
        ("looks", POINTER(c_int8)),
        ("maybe", POINTER(c_int32)),
    )


class Limits(ctypes.Structure):
    _fields_ = (
        ("many", c_int64),  # configurations at once, from which on the earliest go on first
        ("most_bytes", c_int64),  # for all of them, if that was not enough
    )


LIMITS = Limits(4_000_000, 1 << 31)


class FoundColumns(ctypes.Structure):
    _fields_ = (
        ("verdict", c_int32),
        ("place", c_int32),
        ("steps", c_int64),
        ("states_count", c_int64),
        ("path", POINTER(c_int32)),
        ("states", POINTER(c_int32)),
    )


class Questions:
    """What C asks of Python. No exception goes through C: the first is kept until it is left."""

    def __init__(self, transitions: Transitions, patience: Patience) -> None:
        self._transitions = transitions
        self._patience = patience
        self._raised: BaseException | None = None
        self.model = AskModel(self._step)
        self.patience = AskPatience(self._may_go_on)

    def raise_again(self) -> None:
        if self._raised is not None:
            raise self._raised

    def _step(self, kind: int, state: int) -> int:
        try:
            return self._transitions.step(kind, state)
        except BaseException as error:  # noqa: BLE001 - raised again as soon as C is left
            self._raised = self._raised or error
            return FAILED

    def _may_go_on(self, _place: int) -> int:
        try:
            return int(self._patience())
        except BaseException as error:  # noqa: BLE001 - as above; Ctrl-C comes here
            self._raised = self._raised or error
            return 0


def native_search(
    library: ctypes.CDLL,
    plan: Plan,
    transitions: Transitions,
    patience: Patience,
    limits: Limits = LIMITS,
) -> Found:
    if not len(plan.kind):
        return Found(linearizable=True, place=0)
    questions = Questions(transitions, patience)
    found = FoundColumns()
    library.lockcheck_search(
        byref(_columns(plan)),
        questions.model,
        questions.patience,
        byref(limits),
        byref(found),
    )
    try:
        questions.raise_again()
        return _found(found)
    finally:
        library.lockcheck_search_free(byref(found))


def _columns(plan: Plan) -> PlanColumns:
    """Pointers into the arrays of the plan, which has to outlive them."""

    def column(numbers: Numbers) -> object:
        return numbers.ctypes.data_as(POINTER(c_int32))

    return PlanColumns(
        len(plan.kind),
        len(plan.calls),
        len(plan.looks),
        len(plan.maybe),
        plan.slots,
        column(plan.kind),
        column(plan.slot),
        column(plan.twin),
        column(plan.called),
        column(plan.calls),
        plan.looks.ctypes.data_as(POINTER(c_int8)),
        column(plan.maybe),
    )


def _found(found: FoundColumns) -> Found:
    path = _copied(found.path, 2 * found.steps).reshape(-1, 2).tolist()
    return Found(
        linearizable=ANSWERS.get(found.verdict),
        place=found.place,
        path=tuple((last, place) for last, place in path),
        states=tuple(dict.fromkeys(_copied(found.states, found.states_count).tolist())),
        exhausted=found.verdict == OUT_OF_MEMORY,
    )


def _copied(numbers: ctypes._Pointer[c_int32], count: int) -> NDArray[np.int32]:
    if not count:
        return np.zeros(0, dtype=np.int32)
    return np.ctypeslib.as_array(numbers, shape=(count,)).copy()
