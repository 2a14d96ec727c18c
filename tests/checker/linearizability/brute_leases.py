"""Decides whether there is an order of the operations on a lock with leases, by the
definition alone, by trying all orders: for small histories.

A lock is held by so many grants, each with the moment up to which it was promised at least. From
then on it may end by itself, once all that ended before that moment has happened; what was not
confirmed was promised nothing. A confirmed renewal puts off the end of its client's grant, or of
none if that one is over already.

Locks that only count are granted to any client, and a client that releases gives back its own
grant, if it has one left, else the one that was promised for longest.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, TypeAlias

from lockcheck.checker.linearizability.models import Call, Illegal, LockState, Model, State
from lockcheck.history.table import NEVER, NO_TOKEN, Ints, Op, Outcome, Table
from tests.checker.linearizability.brute import OwnOrders, times_alone

Grants: TypeAlias = tuple[tuple[int, int], ...]  # client, and up to when it was promised
NO_PROMISE = -NEVER


class Timed(NamedTuple):
    start: int
    end: int
    call: Call
    client: int
    promised: int
    row: int


class Leased(NamedTuple):
    lock: State  # of the model, where it has owners
    grants: Grants  # sorted


def brute_with_leases(
    table: Table, model: Model, until: Ints, own: OwnOrders = times_alone
) -> bool:
    todo = timed(table, model, until)
    before = own([each.row for each in todo])

    @cache
    def possible(state: Leased, left: frozenset[int]) -> bool:
        if not any(todo[i].call.confirmed for i in left):
            return True
        first_end = min(todo[j].end for j in left if todo[j].call.confirmed)
        if any(possible(after, left) for after in _ended(model, state, first_end)):
            return True
        begun = [i for i in left if todo[i].start <= first_end]
        begun = [i for i in begun if not before.get(i, frozenset()) & left]
        if any(todo[i].call.either and possible(state, left - {i}) for i in begun):
            return True
        afters = ((i, _after(model, state, todo[i])) for i in begun)
        return any(after is not None and possible(after, left - {i}) for i, after in afters)

    return possible(Leased(model.initial, ()), frozenset(range(len(todo))))


def timed(table: Table, model: Model, until: Ints) -> list[Timed]:
    found = []
    for row in range(len(table)):
        f, outcome = Op(int(table.f[row])), Outcome(int(table.outcome[row]))
        if outcome is Outcome.FAIL or (outcome is Outcome.INFO and f is Op.RENEW):
            continue
        either, client = outcome is Outcome.EITHER, int(table.owner[row])
        ok, token = either or outcome is Outcome.OK, int(table.token[row])
        shown = token if model.tokens and ok and token != NO_TOKEN else None
        caller = client if model.owners else None
        call = Call(f, process=caller, token=shown, confirmed=ok, either=either)
        end = int(table.end[row]) if ok else NEVER
        promised = int(until[row]) if ok and f is not Op.RELEASE else NO_PROMISE
        found.append(Timed(int(table.start[row]), end, call, client, promised, row))
    return found


def _ended(model: Model, state: Leased, by: int) -> Iterator[Leased]:
    """The states after the end of one lease that may have ended by then."""
    for grant in dict.fromkeys(state.grants):
        if grant[1] <= by:
            yield Leased(_freed(model, state.lock), _without(state.grants, grant))


def _freed(model: Model, lock: State) -> State:
    return (
        LockState(None, 0, lock.token, exact=False)
        if isinstance(lock, LockState)
        else model.initial
    )


def _without(grants: Grants, grant: tuple[int, int]) -> Grants:
    at = grants.index(grant)
    return grants[:at] + grants[at + 1 :]


def _after(model: Model, state: Leased, what: Timed) -> Leased | None:
    lock = state.lock if model.owners else len(state.grants)
    after = model.step(lock, what.call._replace(confirmed=True))  # else it need not be legal early
    if isinstance(after, Illegal):
        return None
    if model.owners:
        return Leased(after, _one_grant(after, state.grants, what))
    return Leased(model.initial, _counted(state.grants, what))


def _one_grant(lock: State, grants: Grants, what: Timed) -> Grants:
    """The only grant, however often its owner entered: its promise is the latest one."""
    if lock is None or (isinstance(lock, LockState) and not lock.times):
        return ()
    return ((what.client, max(what.promised, *(promised for _, promised in grants), NO_PROMISE)),)


def _counted(grants: Grants, what: Timed) -> Grants:
    if what.call.f is Op.ACQUIRE:
        return tuple(sorted((*grants, (what.client, what.promised))))
    own = [grant for grant in grants if grant[0] == what.client]
    if what.call.f is Op.RELEASE:
        return _without(grants, max(own or grants, key=lambda grant: grant[1]))
    if not own:
        return grants
    latest = max(own, key=lambda grant: grant[1])
    extended = (latest[0], max(latest[1], what.promised))
    return tuple(sorted((*_without(grants, latest), extended)))
