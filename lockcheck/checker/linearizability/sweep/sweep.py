"""Decides locks in near-linear time: sorting, and a few passes over columns, for all keys at once.

It tries one explanation of the answers, that of `holds`: docs/design/engines.md says why, and when
a mistake in it is certain. Locks that only count are counted (`permits`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from lockcheck.checker.linearizability.answer import Answer
from lockcheck.checker.linearizability.models import SWEEP, Call, Illegal, Model, permits_of
from lockcheck.checker.linearizability.own_order import touching
from lockcheck.checker.linearizability.sweep.clients import NOWHERE, Clients, Spots, relevant
from lockcheck.checker.linearizability.sweep.holds import SweepHolds, holds_of
from lockcheck.checker.linearizability.sweep.order import (
    Collision,
    collisions,
    keys_in_conflict,
    keys_with_company,
)
from lockcheck.checker.linearizability.sweep.permits import Stuck, keys_crowded, stuck
from lockcheck.checker.linearizability.sweep.tokens import (
    keys_out_of_order,
    keys_out_of_turn,
    keys_without_room,
    misplaced,
    placed,
)
from lockcheck.history.ordering import groups_of
from lockcheck.history.table import Ints, Op, Outcome, Table

NEEDS_SEARCH = Answer(None, SWEEP, "it takes a search to decide")
ONE_OF_MANY = "its answers exclude each other; so many objects are like this that none are named"
MOST_EVIDENCE = 10_000  # keys; the others are only counted as not linearizable


def sweep(table: Table, model: Model, until: Ints | None = None) -> dict[int, Answer]:
    """The answers, by key symbol, of the objects that are not linearizable or could not be decided.

    `until`: for each confirmed acquire and renewal the end of its promise, NEVER without a lease.
    Rows are in the order of `start`.
    """
    clients = Clients.of(table, until)
    holds, unexplained = holds_of(clients, tokens=model.tokens)
    wrong = np.union1d(clients.key(unexplained), _conflicts(holds, model))
    intricate = clients.key(np.concatenate((clients.overlapping, clients.going_on)))
    doubtful = np.union1d(wrong, clients.key(clients.overlapping))
    if model.crowd:
        return dict.fromkeys(doubtful.tolist(), NEEDS_SEARCH)
    if not model.owners and until is None:
        unsure = np.isin(doubtful, table.key[table.outcome == Outcome.EITHER])
        left = dict.fromkeys(doubtful[unsure].tolist(), NEEDS_SEARCH)
        return left | _counted(table, permits_of(model), doubtful[~unsure])
    if not model.owners:
        intricate = doubtful
    elif _reentrant(model):
        maybe = np.concatenate((clients.maybe_acquired, clients.maybe_released, unexplained))
        again = np.concatenate((maybe, clients.entered_again))
        intricate = np.union1d(intricate, clients.key(again))
    answers = dict.fromkeys(doubtful[np.isin(doubtful, intricate)].tolist(), NEEDS_SEARCH)
    certain = doubtful[~np.isin(doubtful, intricate)]
    if len(certain):
        answers |= _judged(holds, unexplained, certain, model)
    return answers


def _reentrant(model: Model) -> bool:
    caller = Call(Op.ACQUIRE, process=0)
    return not isinstance(model.step(model.step(model.initial, caller), caller), Illegal)


def _conflicts(holds: SweepHolds, model: Model) -> Ints:
    if holds.clients.table.shared.any():
        return keys_with_company(holds)
    if not model.owners or model.crowd:
        return keys_crowded(holds, permits_of(model))
    if not model.tokens:
        return keys_in_conflict(holds)
    # Holds in the order of their tokens, the others put in where they fit, are one order
    # of all holds: where that agrees with the times, nothing else needs a look but the clients' own
    # orders.
    wrong = np.union1d(keys_out_of_order(holds), keys_without_room(holds))
    return np.union1d(wrong, keys_out_of_turn(holds))


@dataclass(frozen=True, slots=True)
class Mistake:
    at: int  # ns: when it became visible
    rows: tuple[int, ...]
    reason: str


def _judged(holds: SweepHolds, unexplained: Spots, keys: Ints, model: Model) -> dict[int, Answer]:
    """The answers for keys that have no other explanation."""
    clients = holds.clients
    named = keys[:MOST_EVIDENCE]
    mistakes: dict[int, list[Mistake]] = {}
    spots = unexplained[np.isin(clients.key(unexplained), named)]
    for spot, key in zip(spots.tolist(), clients.key(spots).tolist(), strict=True):
        mistakes.setdefault(key, []).append(_unexplained(clients, spot))
    some = holds.take(np.isin(holds.key, named))
    for key, which in groups_of(some.key):
        mistakes.setdefault(key, []).extend(_mistakes(some.take(which), model))
    answers = {key: _answer(mistakes[key]) for key in named.tolist()}
    answers |= dict.fromkeys(keys[MOST_EVIDENCE:].tolist(), NEEDS_SEARCH)
    wrong = [clients.key(unexplained), keys_in_conflict(holds)]
    wrong += [keys_out_of_order(holds)] if model.tokens else []
    rest = np.intersect1d(keys[MOST_EVIDENCE:], np.concatenate(wrong)).tolist()
    return answers | dict.fromkeys(rest, Answer(False, SWEEP, ONE_OF_MANY))


def _answer(mistakes: list[Mistake]) -> Answer:
    """The first mistake; undecided without one: a grant without known token may fit elsewhere."""
    if not mistakes:
        return NEEDS_SEARCH
    first = min(mistakes, key=lambda mistake: mistake.at)
    return Answer(False, SWEEP, first.reason, first.rows)


def _unexplained(clients: Clients, spot: int) -> Mistake:
    marks = clients.marks
    at = int(np.searchsorted(marks, spot))
    client = clients.client(marks[max(at - 1, 0) : at + 1])
    rows = [int(clients.row[spot])]
    if at and client[0] == client[-1]:
        rows.insert(0, int(clients.row[marks[at - 1]]))
    who = _who(clients, spot)
    reason = {
        Op.ACQUIRE: f"{who} was granted it again without having released it",
        Op.RELEASE: f"{who} released it without having been granted it",
        Op.RENEW: f"{who} renewed it without having been granted it",
    }[Op(int(clients.f[spot]))]
    return Mistake(int(clients.end(np.array([spot]))[0]), tuple(rows), reason)


def _who(clients: Clients, spot: int) -> str:
    table = clients.table
    return f"process {table.symbols.value(int(table.process[clients.row[spot]]))}"


def _mistakes(holds: SweepHolds, model: Model) -> Iterator[Mistake]:
    """The mistakes in the holds of one key."""
    for each in collisions(holds):
        yield _mistake(holds, each)
    if not model.tokens:
        return
    wrong = list(misplaced(holds))
    yield from (_mistake(holds, each) for each in wrong)
    place = None if wrong else placed(holds)
    if isinstance(place, int):
        who = _who(holds.clients, int(holds.first[place]))
        reason = f"{who} was granted it without a token, and no token is left for it"
        yield Mistake(int(holds.begin[place]), _rows(holds, place), reason)


def _mistake(holds: SweepHolds, found: Collision) -> Mistake:
    rows = _rows(holds, found.one) + _rows(holds, found.other)
    one = _who(holds.clients, int(holds.first[found.one]))
    other = _who(holds.clients, int(holds.first[found.other]))
    reason = found.reason or f"{other} {_had(holds, found.other)} while {one} had it"
    return Mistake(found.at, rows, reason)


def _had(holds: SweepHolds, which: int) -> str:
    f = holds.clients.f[holds.first[which]]
    done = {Op.ACQUIRE: "was granted it", Op.RELEASE: "released it", Op.RENEW: "renewed it"}
    return done[Op(int(f))]


def _rows(holds: SweepHolds, which: int) -> tuple[int, ...]:
    spots = [int(holds.first[which]), int(holds.last[which]), int(holds.cut[which])]
    distinct = dict.fromkeys(spot for spot in spots if spot != NOWHERE)
    return tuple(int(holds.clients.row[spot]) for spot in distinct)


def _counted(table: Table, permits: int, keys: Ints) -> dict[int, Answer]:
    """Counting goes by times alone; what fits if each operation that its client's next one touches
    ended a little earlier fits the clients' own order, too."""
    if len(keys) == 0:
        return {}
    touched, _ = touching(table)
    instant = table.start[touched] == table.end[touched]
    earlier = table.end.copy()
    earlier[touched[~instant]] -= 1
    strict = replace(table, end=earlier)
    rows = np.flatnonzero(relevant(table) & np.isin(table.key, keys))
    answers = {}
    for key, places in groups_of(table.key[rows]):
        group = rows[places]
        if (what := stuck(table, group, permits)) is not None:
            answers[key] = _stuck(table, what)
        elif key in table.key[touched[instant]] or stuck(strict, group, permits) is not None:
            answers[key] = NEEDS_SEARCH
    return answers


def _stuck(table: Table, what: Stuck) -> Answer:
    process = table.symbols.value(int(table.process[what.row]))
    holders = {table.symbols.value(int(table.process[row])): row for row in what.holding}
    reason = {
        Op.ACQUIRE: f"process {process} was granted it while it was held by "
        + " and ".join(f"process {holder}" for holder in holders),
        Op.RELEASE: f"process {process} released it while nobody held it",
        Op.RENEW: f"process {process} renewed it while nobody held it",
    }[Op(int(table.f[what.row]))]
    return Answer(False, SWEEP, reason, (*what.holding, what.row))
