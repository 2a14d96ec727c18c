"""Locks whose grants end by themselves, from the moment on up to which they were promised.

The promise is a part of the state. A confirmed renewal puts it off, and says that the lock had not
ended before; what nobody confirmed was promised nothing. Where a lock counts who entered how often,
all of that ends at once.

A lock that only counts knows as much of each grant as its lease needs: whose it is. Who gives one
back gives back its own, if that is not over; else that which was promised for longest, so that what
remains can end as soon as can be. Where several may end by themselves, the one that may for longest
does: what remains of the others can end then, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeAlias

from lockcheck.checker.linearizability.models import Call, Illegal, LockState, Model, Rank, State
from lockcheck.history.table import NEVER, Op

NO_PROMISE = -NEVER
Grants: TypeAlias = tuple[tuple[int, State], ...]  # up to when, and to whom; the first to end first


class Leased(NamedTuple):
    lock: State
    promised: int  # up to when; NEVER while it is free


def unleased(state: State) -> State:
    return state.lock if isinstance(state, Leased) else state


def leased(model: Model) -> Model:
    """The same lock, with leases; the calls tell up to when they promised it."""
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
        freed = LockState(None, 0, lock.token, told=False) if isinstance(lock, LockState) else None
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
