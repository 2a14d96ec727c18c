"""One call for all engines: a history falls apart into its objects, and each gets the fastest
engine that can tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lockcheck.checker.linearizability.answer import Answer, Patience, endless
from lockcheck.checker.linearizability.models import LOCKING, STORING, Model
from lockcheck.checker.linearizability.search import search
from lockcheck.checker.linearizability.sweep import sweep
from lockcheck.checker.linearizability.zones import zones
from lockcheck.history.ordering import order_by
from lockcheck.history.table import NEVER, NOTHING, Ints, Op, Outcome, Table

MOST_CONFIRMED = 1_000  # keys
NESTED = ("reentrant", "reentrant-fenced")
SWEEP, ZONES, SEARCH = "sweep", "zones", "search"


@dataclass(frozen=True, slots=True)
class Decision:
    """What the engines found. Objects that are linearizable are only counted."""

    model: Model
    objects: int
    engines: Mapping[str, int]  # how many objects each of them told
    answers: Mapping[int, Answer]  # by the symbol of the key: what is not, or could not be told

    @property
    def linearizable(self) -> bool | None:
        if any(answer.linearizable is False for answer in self.answers.values()):
            return False
        return None if self.answers else True


def decide(
    table: Table, model: Model, until: Ints | None = None, patience: Patience = endless
) -> Decision:
    """`until`: for each granted acquire and renewal the moment up to which it was promised."""
    wanted = np.isin(table.f, [int(f) for f in model.operations])
    rows = np.flatnonzero(wanted)
    part = table if len(rows) == len(table) else table.take(rows)
    promised = None if until is None else until[rows]
    objects = _objects(part)
    engine, answers = _at_once(part, model, promised)
    told = Counter({engine: objects})
    leased = promised is not None and bool((promised < NEVER).any())
    for key in [*_undecided(answers), *_intricate(part, model, answers, promised)]:
        answer = _searched(part, key, model, promised, patience)
        if answer.linearizable is None and answers[key].told and not leased:
            continue  # patience ran out
        told.subtract({engine: 1})
        told.update({SEARCH: 1})
        if answer.linearizable:
            del answers[key]
        else:
            answers[key] = answer
    renamed = {key: _renumbered(answer, rows) for key, answer in answers.items()}
    return Decision(model, objects, +told, renamed)


def _undecided(answers: Mapping[int, Answer]) -> list[int]:
    return [key for key, answer in answers.items() if answer.linearizable is None]


def _intricate(
    table: Table, model: Model, answers: Mapping[int, Answer], until: Ints | None
) -> list[int]:
    """Keys that a sweep refuses although clients have operations that touch: there are so many
    ways to put those that nobody is accused before the search has tried them all.

    With leases the search allows too much to confirm it. So then only what no client does in this
    order is left to it, and locks that are entered again."""
    if not model.owners:
        return []
    leased = until is not None and bool((until < NEVER).any())
    odd_only = leased and model.name not in NESTED
    refused = [key for key, answer in answers.items() if answer.linearizable is False]
    return [key for key in refused[:MOST_CONFIRMED] if _touches(table, key, odd_only=odd_only)]


def _touches(table: Table, key: int, *, odd_only: bool) -> bool:
    rows = np.flatnonzero((table.key == key) & (table.outcome != Outcome.FAIL))
    rows = rows[order_by(table.process[rows])]
    before, after = rows[:-1], rows[1:]
    touching = (table.process[before] == table.process[after]) & (
        table.start[after] <= table.end[before]
    )
    if odd_only:
        out, asks = table.f[before] == Op.RELEASE, table.f[after] == Op.ACQUIRE
        touching &= out != asks  # whoever is out asks, and nobody else
    return bool(touching.any())


def _objects(table: Table) -> int:
    """How many keys there are; a count of each number is cheaper than sorting them."""
    if len(table) == 0:
        return 0
    return int(np.count_nonzero(np.bincount(table.key + 1)))


def _at_once(table: Table, model: Model, until: Ints | None) -> tuple[str, dict[int, Answer]]:
    """All objects of a history by one of the engines that need not search."""
    if model.operations == LOCKING:
        return SWEEP, dict(sweep(table, model, until))
    if model.operations == STORING:
        return ZONES, dict(zones(table))
    keys = np.unique(table.key).tolist()
    return SEARCH, {key: Answer(None, SEARCH) for key in keys}


def _searched(
    table: Table, key: int, model: Model, until: Ints | None, patience: Patience
) -> Answer:
    rows = np.flatnonzero(table.key == key)
    part = table.take(rows)
    answer = search(part, model, patience)
    if until is None or answer.linearizable is not False:
        return _renumbered(answer, rows)
    return _with_leases(part, rows, model, until[rows], patience)


def _with_leases(part: Table, rows: Ints, model: Model, until: Ints, patience: Patience) -> Answer:
    """A lease may run out from its promised end on, or later, or never: as what a release does
    that nobody confirmed. The search cannot see that each of these belongs to one grant only, so
    it is more lenient than a lease, and renewals are left out where it may not be clear what they
    renewed: what it refuses is wrong, what it allows may be."""
    asked = (part.f == Op.ACQUIRE) & (part.outcome != Outcome.FAIL)
    until = np.where(asked & (part.outcome == Outcome.INFO), part.start, until)  # no promise
    granted = np.flatnonzero(asked & (until < NEVER))
    both = part.take(np.concatenate((np.arange(len(part)), granted)))
    fresh = slice(len(part), None)
    both.f[fresh], both.outcome[fresh] = Op.RELEASE, Outcome.INFO
    both.start[fresh], both.end[fresh] = until[granted], NEVER
    both.result[fresh], both.argument[fresh] = NOTHING, NOTHING
    order = np.argsort(both.start, kind="stable")
    numbers = np.append(rows, np.full(len(granted), -1))[order]
    answer = search(both.take(order), model, patience)
    if answer.linearizable:
        return Answer(
            None, SEARCH, "its leases and its unanswered operations allow too much to tell"
        )
    return _renumbered(answer, numbers)


def _renumbered(answer: Answer, rows: Ints) -> Answer:
    """The same with rows of the table that `rows` were taken of; made-up rows are left out."""

    def of(own: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(row for row in (int(rows[i]) for i in own) if row >= 0)

    circle = tuple(
        replace(link, before=int(rows[link.before]), after=int(rows[link.after]))
        for link in answer.circle
    )
    stuck_on = None if answer.stuck_on is None else int(rows[answer.stuck_on])
    return replace(
        answer, rows=of(answer.rows), circle=circle, prefix=of(answer.prefix), stuck_on=stuck_on
    )
