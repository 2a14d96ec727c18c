"""Near-linear judges of locks: sorting, and a few passes over columns, for all keys at once.

Each model's file says why what it does is exact. Where clients go on under the same name after
operations that nobody confirmed, there are histories that only a search could tell: the answer is
None there, and says why. A lease may end by itself from the promised moment on, not before; a
confirmed renewal or release says that it had not ended by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lockcheck.checker.linearizability import sweep_nested, sweep_single
from lockcheck.checker.linearizability.answer import Answer
from lockcheck.checker.linearizability.models import Call, Illegal, Model
from lockcheck.checker.linearizability.sweep_clients import Clients, Flags, Spots
from lockcheck.checker.linearizability.sweep_holds import NOWHERE, Holds, Trouble, holds_of
from lockcheck.checker.linearizability.sweep_order import (
    Collision,
    by_key,
    collisions,
    keys_in_conflict,
)
from lockcheck.checker.linearizability.sweep_pauses import NONE, Pauses
from lockcheck.checker.linearizability.sweep_permits import (
    Stuck,
    keys_unexplained,
    leased_out,
    relevant,
    stuck,
)
from lockcheck.checker.linearizability.sweep_repair import NO_COLLISION, repaired
from lockcheck.checker.linearizability.sweep_ties import Doubts, Ties
from lockcheck.checker.linearizability.sweep_tokens import (
    keys_out_of_order,
    keys_without_room,
    misplaced,
    placed,
)
from lockcheck.history.ordering import order_by
from lockcheck.history.table import Ints, Op, Table

SWEEP = "sweep"
OVERLAPPING = "operations of one client overlap"
TOUCHING = "a client's operation begins in the nanosecond in which its last one ended"
ONE_OF_MANY = "its answers exclude each other; so many objects are like this that none are named"
MOST_EVIDENCE = 1_000  # keys; of all others only that they are not linearizable
CHOICE = "operations that nobody confirmed, of clients that went on, leave too many choices"


def sweep(table: Table, model: Model, until: Ints | None = None) -> dict[int, Answer]:
    """By the symbol of their keys, only those that are not linearizable or could not be told.

    `until`: for each confirmed acquire and renewal up to when the lease was promised, NEVER where
    there is none. Rows are in the order of `start`.
    """
    if not model.owners:
        return _counted(table, _permits(model), until)
    clients = Clients.of(table, until)
    answers = {key: _unknown(OVERLAPPING) for key in _overlapping(clients)}
    holds, trouble = _plain(clients, model)
    doubtful = np.union1d(clients.key(trouble.spots), _conflicts(holds, model))
    if len(doubtful) == 0:
        return answers
    doubtful = doubtful[~np.isin(doubtful, list(answers))]
    rows = np.flatnonzero(np.isin(table.key, doubtful))
    part = Clients.of(table.take(rows), None if until is None else until[rows])
    return answers | _judged(part, model, rows)


def _overlapping(clients: Clients) -> list[int]:
    keys: list[int] = np.unique(clients.key(clients.starts[clients.overlapping])).tolist()
    return keys


def _reentrant(model: Model) -> bool:
    caller = Call(Op.ACQUIRE, process=0)
    return not isinstance(model.step(model.step(model.initial, caller), caller), Illegal)


def _plain(clients: Clients, model: Model, paused: Pauses = NONE) -> tuple[Holds, Trouble]:
    """Holds that explain the answers by themselves, whether or not they collide."""
    clients = paused.spent(clients)
    if _reentrant(model):
        clients, breaks, trouble = sweep_nested.plain(clients, tokens=model.tokens)
    else:
        breaks, trouble = sweep_single.plain(clients)
    breaks = paused.added(clients, breaks)
    return holds_of(clients, breaks, tokens=model.tokens), trouble


def _conflicts(holds: Holds, model: Model) -> Ints:
    if not model.tokens:
        return keys_in_conflict(holds)
    # Holds in the order of their tokens, the others put in where they have a place, are one order
    # of all holds: where that agrees with the time, there is nothing else to look at.
    return np.union1d(keys_out_of_order(holds), keys_without_room(holds))


@dataclass(frozen=True, slots=True)
class Fault:
    at: int  # ns: by then it was there to see
    rows: tuple[int, ...]
    reason: str


def _judged(clients: Clients, model: Model, rows: Spots) -> dict[int, Answer]:
    """Keys whose plain explanation does not work: is there one at all?"""
    eager = clients.eager()
    ties = Ties.of(eager)
    if _reentrant(model):
        breaks, trouble, doubts = sweep_nested.lenient(eager, ties, tokens=model.tokens)
    else:
        breaks, trouble, doubts = sweep_single.lenient(eager, ties)
    soft = _soft(ties, trouble, doubts, tokens=model.tokens)
    holds = holds_of(eager, breaks, tokens=model.tokens)
    firm = ~soft[eager.client(holds.first)]
    spots = trouble.spots[~soft[eager.client(trouble.spots)]]
    answers = _beyond_evidence(holds.take(firm), spots, model)
    faults: dict[int, list[Fault]] = {}
    for spot, key in zip(spots.tolist(), eager.key(spots).tolist(), strict=True):
        if key not in answers:
            faults.setdefault(key, []).append(_unexplained(eager, spot))
    for key, which in by_key(holds):
        if key in answers:
            continue
        found = faults.get(key, []) + list(_faults(holds.take(which), firm[which], model))
        if found:
            answers[key] = _answer(found, rows)
        elif not _explained(clients, key, model):
            answers[key] = _unknown(_why(~firm[which]))
    return dict(sorted(answers.items()))  # those with evidence first


def _beyond_evidence(firm: Holds, unexplained: Spots, model: Model) -> dict[int, Answer]:
    """Keys that are not linearizable, without those that come first."""
    wrong = [firm.clients.key(unexplained), keys_in_conflict(firm)]
    if model.tokens:
        wrong.append(keys_out_of_order(firm))
    keys = np.unique(np.concatenate(wrong)).tolist()
    return {key: Answer(False, SWEEP, ONE_OF_MANY) for key in keys[MOST_EVIDENCE:]}


def _explained(clients: Clients, key: int, model: Model) -> bool:
    """Whether interrupting holds where they collide leaves no collision."""
    rows = np.flatnonzero(clients.table.key == key)
    promised = clients.promised[rows] if clients.promised is not None else None
    own = Clients.of(clients.table.take(rows), promised)

    def explain(of: Clients, paused: Pauses) -> tuple[Holds, Trouble]:
        return _plain(of, model, paused)

    def find(holds: Holds) -> Collision | None:
        if len(_conflicts(holds, model)) == 0:
            return None
        firm = np.ones(len(holds), bool)
        found = [*collisions(holds, firm), *(misplaced(holds, firm) if model.tokens else ())]
        return min(found, key=lambda each: each.at, default=NO_COLLISION)

    return repaired(own, explain, find)


def _why(unsure: Flags) -> str:
    return TOUCHING if unsure.any() else CHOICE


def _unknown(reason: str) -> Answer:
    return Answer(None, SWEEP, reason)


def _answer(faults: list[Fault], rows: Spots) -> Answer:
    first = min(faults, key=lambda fault: fault.at)
    return Answer(False, SWEEP, first.reason, tuple(int(rows[row]) for row in first.rows))


def _soft(ties: Ties, trouble: Trouble, doubts: Doubts, *, tokens: bool) -> Flags:
    """Clients whose operations may have happened in another order than they were written down,
    where that could make a difference that `lenient` does not allow for."""
    soft = np.zeros(len(ties.clients.starts), bool)
    soft[ties.client[doubts.slipping]] = True
    troubled = np.zeros(len(soft), bool)
    troubled[ties.clients.client(trouble.spots)] = True
    soft &= troubled
    soft[ties.client[doubts.blurred]] = True
    if tokens:
        soft[ties.client[ties.swapped_tokens()]] = True
    return soft


def _unexplained(clients: Clients, spot: int) -> Fault:
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
    return Fault(int(clients.end[spot]), tuple(rows), reason)


def _who(clients: Clients, spot: int) -> str:
    table = clients.table
    return f"process {table.symbols.value(int(table.process[clients.row[spot]]))}"


def _faults(holds: Holds, firm: Flags, model: Model) -> Iterator[Fault]:
    """Of one key."""
    for each in collisions(holds, firm):
        yield _fault(holds, each)
    if not model.tokens:
        return
    wrong = list(misplaced(holds, firm))
    yield from (_fault(holds, each) for each in wrong)
    place = placed(holds) if firm.all() and not wrong else None
    if isinstance(place, int):
        who = _who(holds.clients, int(holds.first[place]))
        reason = f"{who} was granted it without being told a token, and there is none left for it"
        yield Fault(int(holds.begin[place]), _rows(holds, place), reason)


def _fault(holds: Holds, found: Collision) -> Fault:
    rows = _rows(holds, found.one) + _rows(holds, found.other)
    one = _who(holds.clients, int(holds.first[found.one]))
    other = _who(holds.clients, int(holds.first[found.other]))
    reason = found.reason or f"{other} {_had(holds, found.other)} while {one} had it"
    return Fault(found.at, rows, reason)


def _had(holds: Holds, which: int) -> str:
    f = holds.clients.f[holds.first[which]]
    done = {Op.ACQUIRE: "was granted it", Op.RELEASE: "released it", Op.RENEW: "renewed it"}
    return done[Op(int(f))]


def _rows(holds: Holds, which: int) -> tuple[int, ...]:
    spots = [int(holds.first[which]), int(holds.last[which]), int(holds.cut[which])]
    distinct = dict.fromkeys(spot for spot in spots if spot != NOWHERE)
    return tuple(int(holds.clients.row[spot]) for spot in distinct)


def _permits(model: Model) -> int:
    state, permits = model.initial, 0
    while not isinstance(after := model.step(state, Call(Op.ACQUIRE)), Illegal):
        state, permits = after, permits + 1
    return permits


def _counted(table: Table, permits: int, until: Ints | None) -> dict[int, Answer]:
    doubtful = keys_unexplained(Clients.of(table, until), permits)
    if len(doubtful) == 0:
        return {}
    rows = np.flatnonzero(relevant(table) & np.isin(table.key, doubtful))
    leases = None if until is None else leased_out(table, until)
    rows = rows[order_by(table.key[rows].astype(np.int64))]
    groups = np.split(rows, np.flatnonzero(np.diff(table.key[rows])) + 1)
    found = ((int(table.key[group[0]]), stuck(table, group, permits, leases)) for group in groups)
    return {key: _stuck(table, what) for key, what in found if what is not None}


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
