"""Models of locks that several clients hold at once, each by a grant of its own: readers and
writers, and permits with owners.

With leases, a grant may end by itself once its promise is over. Then it keeps no client out any
more, and it has certainly ended as soon as a client is admitted that needs its room. Where that
needs the room of some of them only, the state is the set of all states that are possible then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple, TypeAlias

from lockcheck.checker.linearizability.models import (
    LOCKING,
    SWEEP,
    Call,
    Illegal,
    Model,
    Rank,
    State,
)
from lockcheck.history.table import NEVER, Op

OVER = -NEVER  # in place of the end of a promise: the grant may have ended


class Grant(NamedTuple):
    until: int  # the end of its promise; NEVER without a lease
    process: str  # as text, so that grants can be sorted
    shared: bool


Grants: TypeAlias = tuple[Grant, ...]  # sorted
# The grants beside which a client is not admitted, and of how many of them.
Room: TypeAlias = Callable[[Grants, Call], tuple[list[Grant], int]]


def crowd(name: str, meaning: str, noun: str, room: Room) -> Model:
    def step(state: State, call: Call) -> State | Illegal:
        states = _states(state)
        after = frozenset(after for each in states for after in _after(each, call, room))
        return after or Illegal(_why_not(min(states), call, room))

    start: State = frozenset({()})
    return Model(
        name, meaning, start, step, LOCKING, owners=True, crowd=True, noun=noun, engine=SWEEP
    )


def leased_crowd(model: Model) -> Model:
    """The same lock with leases; each call carries the end of its promise."""

    def lapse(state: State) -> State:
        first = rank(state).promised
        return frozenset(
            _sorted(each._replace(until=OVER) if each.until == first else each for each in grants)
            for grants in _states(state)
        )

    def rank(state: State) -> Rank:
        promised = (each.until for grants in _states(state) for each in grants)
        return Rank(
            state, promised=min((until for until in promised if until > OVER), default=NEVER)
        )

    return replace(model, rank=rank, lapse=lapse)


def _after(grants: Grants, call: Call, room: Room) -> Iterator[Grants]:
    """The states that can follow."""
    until = NEVER if call.until is None else call.until
    who = str(call.process)
    if call.f is Op.ACQUIRE:
        new, (rivals, most) = Grant(until, who, call.shared), room(grants, call)
        ended = [each for each in rivals if each.until == OVER]
        # What has to have ended, so that it can be admitted.
        for gone in combinations(ended, max(0, len(rivals) - most)):
            yield _sorted((*_without(grants, gone), new))
        return
    if call.either and not (call.last and any(each.process == who for each in grants)):
        yield grants  # it had nothing to release; or had, and its client shows it afterwards
    for own in dict.fromkeys(each for each in grants if each.process == who):
        others = _without(grants, [own])
        if call.f is Op.RELEASE:
            yield others
        else:
            later = until if call.until is not None else own.until
            yield _sorted((*others, own._replace(until=max(own.until, later))))


def _why_not(grants: Grants, call: Call, room: Room) -> str:
    if call.f is not Op.ACQUIRE:
        return f"process {call.process} does not hold it"
    rivals, most = room(grants, call)
    if most:
        return f"all {most + 1} permits are held"
    names = dict.fromkeys(f"process {each.process}" for each in rivals if each.until > OVER)
    return f"{' and '.join(names)} {'holds' if len(names) == 1 else 'hold'} it"


def _without(grants: Grants, gone: Iterable[Grant]) -> Grants:
    left = list(grants)
    for each in gone:
        left.remove(each)
    return tuple(left)


def _sorted(grants: Iterable[Grant]) -> Grants:
    return tuple(sorted(grants))


def _states(state: State) -> frozenset[Grants]:
    assert isinstance(state, frozenset)  # noqa: S101 - the states are this model's own
    return state


def _beside_readers(grants: Grants, call: Call) -> tuple[list[Grant], int]:
    return [each for each in grants if not (each.shared and call.shared)], 0


def owned_permits(permits: int) -> Model:
    meaning = f"{permits} permits, each released by its owner"
    return crowd(
        "owner-semaphore",
        meaning,
        "lock with permits",
        lambda grants, _: (list(grants), permits - 1),
    )


SHARED = crowd("shared", "readers together, or one writer", "shared lock", _beside_readers)
OWNER_SEMAPHORE = owned_permits(2)
