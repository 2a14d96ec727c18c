"""The objects as models: about ten lines each, from a state and a call to the next state.

A model only sees operations that took effect. A failed one did not happen, and an unconfirmed one
is tried both ways by the engines: then `confirmed` is False, there is no answer to look at, and a
model may refuse it if an order without it, or with it later, is as good. States and calls are
hashable. A read and a renewal look at the state and never change it: the engines rely on that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple

from lockcheck.history.table import NEVER, NO_TOKEN, Op
from lockcheck.plugins import Registry

SWEEP, ZONES, SEARCH = "sweep", "zones", "search"  # the engines


class Call(NamedTuple):
    """An operation as a model sees it. Calls that are equal are interchangeable."""

    f: Op
    process: Hashable = None
    argument: Hashable = None  # the value to write or add; of a cas the expected one
    second: Hashable = None  # of a cas the new value
    result: Hashable = None  # of a read the value
    token: int | None = None
    confirmed: bool = True
    either: bool = False  # it may have done nothing
    last: bool = False  # the client's next operation shows no grant from before this one
    until: int | None = None  # with leases: until when it promised the lock
    shared: bool = False  # of an acquire: others may hold it beside


@dataclass(frozen=True, slots=True)
class Illegal:
    reason: str  # the state that it contradicts: "process 3 holds it"


State = Hashable
StepFunction = Callable[[State, Call], State | Illegal]


class Rank(NamedTuple):
    """Orders states: of two that are `alike`, all that can follow the higher one can follow the
    lower one, too. Lower means that no other field is higher."""

    alike: Hashable
    token: int = 0  # the last one granted
    promised: int = NEVER  # `lapse` can follow from then on


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    meaning: str
    initial: State
    step: StepFunction
    operations: frozenset[Op]  # that it knows: engines ignore all others
    owners: bool = False  # the caller matters, so it is a part of the call
    tokens: bool = False  # the granted token matters
    many: bool = False  # a read returns any number of values, in any order
    reentrant: bool = False  # its owner may be granted it again
    crowd: bool = False  # several may hold it, each by a grant of its own
    rank: Callable[[State], Rank] | None = None  # None: no two states are alike
    lapse: Callable[[State], State] | None = None  # the state after a lease ended by itself
    noun: str = ""  # what a sentence calls such an object; empty: the model's name
    engine: str = SEARCH  # the fast ones judge the models that they know: the search judges any


LOCKING = frozenset({Op.ACQUIRE, Op.RELEASE, Op.RENEW})
STORING = frozenset({Op.READ, Op.WRITE, Op.CAS})


def semaphore(permits: int) -> Model:
    """A lock that counts: any client may release it."""

    def step(held: State, call: Call) -> State | Illegal:
        assert isinstance(held, int)  # noqa: S101 - the states are this model's own
        if call.f is Op.ACQUIRE:
            return held + 1 if held < permits else Illegal(f"all {permits} permits are held")
        if held == 0:
            return Illegal("nobody holds it")
        return held - 1 if call.f is Op.RELEASE else held

    name = "mutex" if permits == 1 else "semaphore"
    meaning = "held or free, whoever releases it" if permits == 1 else f"{permits} permits"
    noun = "lock that anybody may release" if permits == 1 else "lock with permits"
    return Model(name, meaning, 0, step, LOCKING, noun=noun, engine=SWEEP)


def permits_of(model: Model) -> int:
    """How many clients may hold it at once."""
    state, permits = model.initial, 0
    while not isinstance(after := model.step(state, Call(Op.ACQUIRE)), Illegal):
        state, permits = after, permits + 1
    return permits


def _owner_mutex(owner: State, call: Call) -> State | Illegal:
    if call.f is Op.ACQUIRE:
        return (call.process,) if owner is None else Illegal(f"{_who(owner)} holds it")
    if owner != (call.process,):
        return Illegal("nobody holds it" if owner is None else f"{_who(owner)} holds it")
    return None if call.f is Op.RELEASE else owner


def _who(owner: State) -> str:
    return f"process {owner[0]}" if isinstance(owner, tuple) else "nobody"


class LockState(NamedTuple):
    """State of a lock that counts levels, has tokens, or both. An unknown token is the smallest
    that it can be: whatever fits a larger one fits that."""

    owner: Hashable
    times: int
    token: int | None  # the last one; None: none is known so far
    exact: bool  # it is this token; otherwise this one or a larger one


FREE = LockState(None, 0, None, exact=False)


def _rank(state: State) -> Rank:
    """A lower last token allows more; but entering again returns the token of the hold."""
    assert isinstance(state, LockState)  # noqa: S101 - the states are this model's own
    bound = state.token if state.exact and state.times else None
    token = NO_TOKEN if state.token is None else state.token
    return Rank((state.owner, state.times, bound), token)


def _owned(name: str, meaning: str, *, many: bool, fenced: bool) -> Model:
    """A lock whose owner counts its levels, whose grants have tokens, or both."""

    def step(state: State, call: Call) -> State | Illegal:
        assert isinstance(state, LockState)  # noqa: S101 - the states are this model's own
        if state.times and state.owner != call.process:
            return Illegal(f"process {state.owner} holds it")
        if call.f is not Op.ACQUIRE:
            return _leave(state, call)
        if state.times:
            return _enter_again(state, call) if many else Illegal("the caller holds it already")
        return _grant(state, call) if fenced else LockState(call.process, 1, None, exact=False)

    model = Model(name, meaning, FREE, step, LOCKING, owners=True, tokens=fenced, engine=SWEEP)
    noun = f"{'reentrant ' if many else ''}lock{' with tokens' if fenced else ''}"
    return replace(model, reentrant=many, rank=_rank if fenced else None, noun=noun)


def _leave(state: LockState, call: Call) -> State | Illegal:
    if not state.times:
        return Illegal("nobody holds it")
    if call.f is Op.RENEW:
        return state
    if state.times == 1:
        return LockState(None, 0, state.token, exact=False)
    return state._replace(times=state.times - 1)


def _enter_again(state: LockState, call: Call) -> State | Illegal:
    """A further level; a token that is seen here first is the hold's. An unconfirmed level only
    matters right before the release that would otherwise be the last, so it can wait until then."""
    if not call.confirmed and state.times > 1:
        return Illegal("the caller holds it more than once already")
    inside = state._replace(times=state.times + 1)
    if call.token is None or (state.exact and call.token == state.token):
        return inside
    if state.exact or (state.token is not None and call.token < state.token):
        than = "" if state.exact else " or higher"
        return Illegal(f"the token of this hold is {state.token}{than}")
    return inside._replace(token=call.token, exact=True)


def _grant(state: LockState, call: Call) -> State | Illegal:
    last = state.token
    if call.token is None:  # unknown
        return LockState(call.process, 1, None if last is None else last + 1, exact=False)
    if last is not None and call.token <= last:
        return Illegal(f"token {last} was granted before")
    return LockState(call.process, 1, call.token, exact=True)


def register(initial: Hashable = None) -> Model:
    meaning = "what was written last is read"
    return Model("register", meaning, initial, _register, STORING, engine=ZONES)


def _register(value: State, call: Call) -> State | Illegal:
    if call.f is Op.WRITE:
        return call.argument
    if call.f is Op.READ:
        return value if call.result == value else Illegal(f"it is {value_words(value)}")
    if call.argument != value:
        return Illegal(f"it is {value_words(value)}")
    return call.second


def value_words(value: Hashable) -> str:
    """A value that `Symbols.hashable` made, as JSON."""
    if isinstance(value, frozenset):
        return f"[{', '.join(sorted(map(value_words, value)))}]"
    if isinstance(value, tuple):
        return str(value[0], "utf-8", "replace")
    return "null" if value is None else str(value) if isinstance(value, int) else f'"{value}"'


def _set(elements: State, call: Call) -> State | Illegal:
    """A read returns all elements, in any order."""
    assert isinstance(elements, frozenset)  # noqa: S101 - the states are this model's own
    if call.f is Op.ADD:
        return elements | {call.argument}
    return elements if call.result == elements else Illegal(_difference(elements, call.result))


def _difference(elements: frozenset[Hashable], read: Hashable) -> str:
    if not isinstance(read, frozenset):
        return "it holds a set"
    parts = (("without", elements - read), ("with", read - elements))
    return " and ".join(f"it was read {word} {value_words(some)}" for word, some in parts if some)


def _counter(number: State, call: Call) -> State | Illegal:
    assert isinstance(number, int)  # noqa: S101 - the states are this model's own
    if call.f is Op.ADD:
        return number + call.argument if isinstance(call.argument, int) else Illegal("no number")
    return number if call.result == number else Illegal(f"it is {number}")


MUTEX = semaphore(1)
OWNER_MUTEX = Model(
    "owner-mutex",
    "only its owner releases it",
    None,
    _owner_mutex,
    LOCKING,
    owners=True,
    noun="lock",
    engine=SWEEP,
)
REENTRANT = _owned("reentrant", "its owner may enter again", many=True, fenced=False)
FENCED = _owned("fenced", "each grant has a higher token", many=False, fenced=True)
REENTRANT_FENCED = _owned(
    "reentrant-fenced", "both: entering again returns the same token", many=True, fenced=True
)
ADDING = frozenset({Op.ADD, Op.READ})
SET = Model("set", "what was added is read", frozenset(), _set, ADDING, many=True)
COUNTER = Model("counter", "what was added is read as a sum", 0, _counter, ADDING)

SEMAPHORE, REGISTER = semaphore(2), register()
CAS_REGISTER = replace(REGISTER, name="cas-register", meaning="a register with compare-and-set")

# By the names that `--model` and the terms of a history use.
MODELS = Registry(
    "lockcheck.models",
    Model,
    "lockcheck.checker.linearizability",
    {
        "mutex": "models:MUTEX",
        "owner-mutex": "models:OWNER_MUTEX",
        "reentrant": "models:REENTRANT",
        "fenced": "models:FENCED",
        "reentrant-fenced": "models:REENTRANT_FENCED",
        "semaphore": "models:SEMAPHORE",
        "owner-semaphore": "crowds:OWNER_SEMAPHORE",
        "shared": "crowds:SHARED",
        "register": "models:REGISTER",
        "cas-register": "models:CAS_REGISTER",
        "set": "models:SET",
        "counter": "models:COUNTER",
    },
)
