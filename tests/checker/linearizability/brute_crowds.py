"""Decides whether there is an order of the operations on a lock that several clients hold at once,
each by a grant of its own, by the definition alone: for small histories.

A lock is so many grants, each of one client, shared or not, with the moment up to which it was
promised. From then on it may end by itself, once all that ended before that moment has happened.
A release that may have had no effect had none only if there was nothing to release, or if its
client's next confirmed operation is a release or a renewal.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, TypeAlias

from lockcheck.checker.linearizability.models import Model, permits_of
from lockcheck.history.table import NEVER, Ints, Op, Outcome, Table
from tests.checker.linearizability.brute import OwnOrders, times_alone


class Held(NamedTuple):
    client: int
    shared: bool
    promised: int


class Timed(NamedTuple):
    f: Op
    client: int
    shared: bool
    start: int
    end: int
    sure: bool
    either: bool
    last: bool
    promised: int
    row: int


Lock: TypeAlias = frozenset[tuple[Held, int]]  # with a number, since a client may have two alike


def brute_crowd(
    table: Table, model: Model, until: Ints | None, own: OwnOrders = times_alone
) -> bool:
    todo = [one for one in _timed(table, until) if one is not None]
    before = own([each.row for each in todo])
    permits = permits_of(model) if model.name == "owner-semaphore" else None

    @cache
    def possible(lock: Lock, left: frozenset[int]) -> bool:
        sure = [todo[i].end for i in left if todo[i].sure]
        if not sure:
            return True
        first_end = min(sure)
        ended = (lock - {one} for one in lock if one[0].promised <= first_end)
        if any(possible(after, left) for after in ended):
            return True
        begun = [i for i in left if todo[i].start <= first_end]
        begun = [i for i in begun if not before.get(i, frozenset()) & left]
        nothing = (
            i for i in begun if todo[i].either and not (todo[i].last and _own(lock, todo[i]))
        )
        if any(possible(lock, left - {i}) for i in nothing):
            return True
        return any(
            possible(after, left - {i})
            for i in begun
            for after in _afters(lock, todo[i], permits, i)
        )

    return possible(frozenset(), frozenset(range(len(todo))))


def _is_last(table: Table, row: int) -> bool:
    following = (
        Op(int(table.f[later]))
        for later in range(row + 1, len(table))
        if table.owner[later] == table.owner[row] and table.outcome[later] == Outcome.OK
    )
    return next(following, Op.ACQUIRE) is Op.ACQUIRE


def _own(lock: Lock, what: Timed) -> bool:
    return any(held.client == what.client for held, _ in lock)


def _timed(table: Table, until: Ints | None) -> Iterator[Timed | None]:
    for row in range(len(table)):
        f, outcome = Op(int(table.f[row])), Outcome(int(table.outcome[row]))
        if outcome is Outcome.FAIL or (outcome is Outcome.INFO and f is Op.RENEW):
            continue
        sure = outcome is not Outcome.INFO
        promised = NEVER if until is None else int(until[row]) if sure else -NEVER
        yield Timed(
            f,
            int(table.owner[row]),
            bool(table.shared[row]),
            int(table.start[row]),
            int(table.end[row]) if sure else NEVER,
            sure,
            outcome is Outcome.EITHER,
            _is_last(table, row),
            promised,
            row,
        )


def _afters(lock: Lock, what: Timed, permits: int | None, number: int) -> Iterator[Lock]:
    if what.f is Op.ACQUIRE:
        beside = [held for held, _ in lock if not (held.shared and what.shared)]
        if (len(lock) < permits) if permits else not beside:
            yield lock | {(Held(what.client, what.shared, what.promised), number)}
        return
    for one in lock:
        held, which = one
        if held.client != what.client:
            continue
        if what.f is Op.RELEASE:
            yield lock - {one}
        else:
            longer = held._replace(promised=max(held.promised, what.promised))
            yield (lock - {one}) | {(longer, which)}
