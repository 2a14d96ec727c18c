"""The general search in C: the same as `python.py`, which explains why it is right."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int32, c_int64, c_void_p

import numpy as np
from numpy.typing import NDArray

from lockcheck.checker.linearizability.answer import Patience
from lockcheck.checker.linearizability.leases import Leased, unleased
from lockcheck.checker.linearizability.models import Call, LockState, State
from lockcheck.checker.linearizability.search.plan import ILLEGAL, Found, SearchPlan, Transitions
from lockcheck.history.table import NEVER, NO_TOKEN

STUCK, LINEARIZABLE, IMPATIENT, OUT_OF_MEMORY, RAISED = range(5)
FAILED = -2
FIRST = -2  # in place of a class: asks for the initial state
ANSWERS = {LINEARIZABLE: True, STUCK: False}


class RankColumns(ctypes.Structure):
    _fields_ = (("alike", c_int64), ("token", c_int64), ("promised", c_int64))


AskModel = ctypes.CFUNCTYPE(c_int32, c_int32, c_int32, POINTER(RankColumns))
AskPatience = ctypes.CFUNCTYPE(c_int32, c_int32)


COLUMNS = (  # of the plan
    *("kind", "slot", "twin", "called", "time", "calls", "looks", "maybe", "first", "earlier"),
)


class PlanColumns(ctypes.Structure):
    _fields_ = (
        ("returns", c_int32),
        ("calls_count", c_int32),
        ("kinds", c_int32),
        ("maybes", c_int32),
        ("slots", c_int32),
        *((name, c_void_p) for name in COLUMNS),
    )


class NativeLock(ctypes.Structure):
    _fields_ = (("many", c_int32), ("fenced", c_int32), ("calls", c_void_p))


LOCKS = ("owner-mutex", "reentrant", "fenced", "reentrant-fenced")  # that C knows


class Limits(ctypes.Structure):
    _fields_ = (
        ("many", c_int64),  # configurations at once, above which the earliest go on first
        ("most_bytes", c_int64),  # that the search may keep
    )


MANY = 4_000_000


class FoundColumns(ctypes.Structure):
    _fields_ = (
        ("verdict", c_int32),
        ("place", c_int32),
        ("steps", c_int64),
        ("states_count", c_int64),
        ("path", POINTER(c_int32)),
        ("states", POINTER(c_int32)),
        ("held", POINTER(c_int64)),
    )


class Callbacks:
    """The functions that C calls. Exceptions do not pass through C: the first is raised after."""

    def __init__(self, transitions: Transitions, patience: Patience) -> None:
        self._transitions = transitions
        self._patience = patience
        self.raised: BaseException | None = None
        self.model = AskModel(self._step)
        self.patience = AskPatience(self._may_go_on)

    def _step(self, kind: int, state: int, rank: ctypes._Pointer[RankColumns]) -> int:
        try:
            after = state if kind == FIRST else self._transitions.step(kind, state)
            if after != ILLEGAL:
                rank[0] = self._transitions.ranks[after]
        except BaseException as error:  # noqa: BLE001 - raised again as soon as C is left
            self.raised = self.raised or error
            return FAILED
        return after

    def _may_go_on(self, _place: int) -> int:
        try:
            return int(self._patience.may_go_on())
        except BaseException as error:  # noqa: BLE001 - as above; Ctrl-C comes here
            self.raised = self.raised or error
            return 0


def native_search(
    library: ctypes.CDLL,
    plan: SearchPlan,
    transitions: Transitions,
    patience: Patience,
    many: int = MANY,
) -> Found:
    if not len(plan.kind):
        return Found(linearizable=True, place=0)
    lock = LockColumns(transitions) if transitions.model.name in LOCKS else None
    callbacks = Callbacks(transitions, patience)
    limits = Limits(many, patience.most_bytes)
    found = FoundColumns()
    library.lockcheck_search(
        byref(_columns(plan)),
        None if lock is None else byref(lock.columns),
        callbacks.model,
        callbacks.patience,
        byref(limits),
        byref(found),
    )
    try:
        if callbacks.raised is not None:
            raise callbacks.raised
        return _found(found, lock)
    finally:
        library.lockcheck_search_free(byref(found))


def _columns(plan: SearchPlan) -> PlanColumns:
    """Pointers into the arrays of the plan, which has to outlive them."""
    return PlanColumns(
        len(plan.kind),
        len(plan.calls),
        len(plan.looks),
        len(plan.maybe),
        plan.slots,
        *(_address(getattr(plan, name)) for name in COLUMNS),
    )


def _address(column: NDArray[np.integer]) -> int:
    """The array's address; `ndarray.ctypes` for all columns takes longer than a short search."""
    address: int = column.__array_interface__["data"][0]
    return address


class LockColumns:
    """Translates classes of calls for C, and states from C back to the model's."""

    def __init__(self, transitions: Transitions) -> None:
        self._transitions = transitions
        self._owners = {call.process: i for i, call in enumerate(transitions.classes)}
        self._processes = [call.process for call in transitions.classes]
        self._calls = np.array([self._call(call) for call in transitions.classes], np.int64)
        model = transitions.model
        self.columns = NativeLock(model.reentrant, model.tokens, _address(self._calls))

    def _call(self, call: Call) -> tuple[int, int, int, int, bool]:
        token = NO_TOKEN if call.token is None else call.token
        until = NEVER if call.until is None else call.until
        return call.f, self._owners[call.process], token, until, call.confirmed

    def number(self, held: list[int]) -> int:
        owner, times, token, exact, promised = held
        who = self._processes[owner] if times else None
        known = None if token == NO_TOKEN else token
        state: State = LockState(who, times, known, exact=bool(exact))
        if not isinstance(unleased(self._transitions.model.initial), LockState):
            state = (who,) if times else None
        if self._transitions.model.lapse is not None:
            state = Leased(state, promised)
        return self._transitions.number(state)


def _found(found: FoundColumns, lock: LockColumns | None) -> Found:
    path = _copied(found.path, 2 * found.steps).reshape(-1, 2).tolist()
    states = _copied(found.states, found.states_count).tolist()
    if lock is not None:
        held = _copied(found.held, len(states) * 5).reshape(-1, 5).tolist()
        states = [lock.number(each) for each in held]
    return Found(
        linearizable=ANSWERS.get(found.verdict),
        place=found.place,
        path=tuple((last, place) for last, place in path),
        states=tuple(dict.fromkeys(states)),
        exhausted=found.verdict == OUT_OF_MEMORY,
    )


def _copied(
    numbers: ctypes._Pointer[c_int32] | ctypes._Pointer[c_int64], count: int
) -> NDArray[np.integer]:
    if not count:
        return np.zeros(0, dtype=np.int32)
    return np.ctypeslib.as_array(numbers, shape=(count,)).copy()
