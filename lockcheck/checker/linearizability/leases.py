"""Models of locks with leases: a grant may end by itself once its promise is over.

The promise is a part of the state. A confirmed renewal extends it, and shows that the lock had not
ended before; an unconfirmed one promises nothing. Where a lock counts how often its owner entered,
all levels end at once.

A lock that only counts keeps the client and the promise of each grant. A client that releases gives
back its own grant, if it still has one; else the one with the longest promise, so that the others
can end as early as possible. Where several grants may end by themselves, the one with the earliest
promise ends first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeAlias

from lockcheck.checker.linearizability.crowds import leased_crowd
from lockcheck.checker.linearizability.models import Call, Illegal, LockState, Model, Rank, State
from lockcheck.history.table import NEVER, Op

NO_PROMISE = -NEVER
Grants: TypeAlias = tuple[tuple[int, State], ...]  # (promised until, client), earliest first


class Leased(NamedTuple):
    lock: State
    promised: int  # until when; NEVER while the lock is free


def unleased(state: State) -> State:
    """The state of the lock without its promise."""
    return state.lock if isinstance(state, Leased) else state


def leased(model: Model) -> Model:
    """The same lock with leases; each call carries the end of its promise."""
    if model.crowd:
        return leased_crowd(model)
    if model.owners:
        return _owned(model)
    return _counted(model)


def _owned(model: Model) -> Model:
    def step(state: State, call: Call) -> State | Illegal:
        assert isinstance(state, Leased)  # noqa: S101 - the states are this model's own
        after = model.step(state.lock, call)
        if isinstance(after, Illegal):
            return after
        if not _is_held(after):
            return Leased(after, NEVER)
        before = state.promised if _is_held(state.lock) else NO_PROMISE
        asked = call.until if call.until is not None and call.f is not Op.RELEASE else NO_PROMISE
        return Leased(after, max(before, asked))

    def lapse(state: State) -> State:
        assert isinstance(state, Leased)  # noqa: S101
        lock = state.lock
        freed = LockState(None, 0, lock.token, exact=False) if isinstance(lock, LockState) else None
        return Leased(freed, NEVER)

    def rank(state: State) -> Rank:
        assert isinstance(state, Leased)  # noqa: S101
        own = model.rank(state.lock) if model.rank else Rank(state.lock)
        return own._replace(promised=state.promised)

    initial = Leased(model.initial, NEVER)
    return replace(model, initial=initial, step=step, rank=rank, lapse=lapse)


def _is_held(lock: State) -> bool:
    return lock.times > 0 if isinstance(lock, LockState) else lock is not None


def _counted(model: Model) -> Model:
    def step(state: State, call: Call) -> State | Illegal:
        after = model.step(len(_grants(state)), call)
        return after if isinstance(after, Illegal) else _with(_grants(state), call)

    def lapse(state: State) -> State:
        return _grants(state)[1:]

    def rank(state: State) -> Rank:
        if not state:
            return Rank(state)
        (promised, client), *others = _grants(state)
        return Rank((client, *others), promised=promised)

    return replace(model, initial=(), step=step, rank=rank, lapse=lapse, owners=True)


def _grants(state: State) -> Grants:
    assert isinstance(state, tuple)  # noqa: S101 - the states are this model's own
    return state


def _with(grants: Grants, call: Call) -> Grants:
    until = NO_PROMISE if call.until is None else call.until
    if call.f is Op.ACQUIRE:
        return _sorted(*grants, (until, call.process))
    own = [grant for grant in grants if grant[1] == call.process]
    if call.f is Op.RELEASE:
        return _without(grants, (own or grants)[-1])
    if not own or until <= own[-1][0]:
        return grants
    return _sorted(*_without(grants, own[-1]), (until, call.process))


def _sorted(*grants: tuple[int, State]) -> Grants:
    return tuple(sorted(grants, key=lambda grant: (grant[0], str(grant[1]))))


def _without(grants: Grants, grant: tuple[int, State]) -> Grants:
    at = grants.index(grant)
    return grants[:at] + grants[at + 1 :]
