"""One call for all engines: a history falls apart into its objects, and each gets the fastest
engine that can tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lockcheck.checker.linearizability.answer import Answer, Patience, endless
from lockcheck.checker.linearizability.keepers import has_keepers, in_their_clients_name, woven
from lockcheck.checker.linearizability.models import LOCKING, SEARCH, SWEEP, ZONES, Model
from lockcheck.checker.linearizability.search.search import search
from lockcheck.checker.linearizability.sweep.sweep import sweep
from lockcheck.checker.linearizability.zones import zones
from lockcheck.history.table import NEVER, Ints, Table, among

CROSSING = "a keeper's renewal was under way while its client may have been granted it anew"


@dataclass(frozen=True, slots=True)
class Decision:
    """What the engines found. Objects that are linearizable are only counted."""

    model: Model
    objects: int
    engines: Mapping[str, int]  # how many objects each of them told
    answers: Mapping[int, Answer]  # by the symbol of the key: what is not, or could not be decided

    @property
    def linearizable(self) -> bool | None:
        if any(answer.linearizable is False for answer in self.answers.values()):
            return False
        return None if self.answers else True


def decide(
    table: Table, model: Model, until: Ints | None = None, patience: Patience = endless
) -> Decision:
    """`until`: for each granted acquire and renewal the moment up to which it was promised."""
    rows = np.flatnonzero(among(table.f, model.operations))
    part = table if len(rows) == len(table) else table.take(rows)
    promised = None if until is None else until[rows]
    objects = _objects(part)
    if model.operations == LOCKING and has_keepers(part):
        engine, answers = _with_keepers(part, model, promised)
        part = in_their_clients_name(part)
    else:
        engine, answers = _at_once(part, model, promised)
    told = Counter({engine: objects})
    for key in [key for key, answer in answers.items() if answer.linearizable is None]:
        answer = _searched(part, key, model, promised, patience)
        told.subtract({engine: 1})
        told.update({SEARCH: 1})
        if answer.linearizable:
            del answers[key]
        else:
            answers[key] = answer
    renamed = {key: _renumbered(answer, rows) for key, answer in answers.items()}
    return Decision(model, objects, +told, renamed)


def _with_keepers(table: Table, model: Model, until: Ints | None) -> tuple[str, dict[int, Answer]]:
    if not model.owners:
        return _at_once(in_their_clients_name(table), model, until)
    threads = woven(table, until)
    engine, answers = _at_once(threads.table, model, threads.until)
    answers = {key: _renumbered(answer, threads.rows) for key, answer in answers.items()}
    return engine, answers | dict.fromkeys(threads.crossing, Answer(None, engine, CROSSING))


def _objects(table: Table) -> int:
    """How many keys there are; a count of each number is cheaper than sorting them."""
    if len(table) == 0:
        return 0
    return int(np.count_nonzero(np.bincount(table.key + 1)))


def _at_once(table: Table, model: Model, until: Ints | None) -> tuple[str, dict[int, Answer]]:
    """All objects of a history by one of the engines that need not search."""
    if model.engine == SWEEP:
        return SWEEP, dict(sweep(table, model, until))
    if model.engine == ZONES:
        return ZONES, dict(zones(table))
    keys = np.unique(table.key).tolist()
    return SEARCH, {key: Answer(None, SEARCH) for key in keys}


def _searched(
    table: Table, key: int, model: Model, until: Ints | None, patience: Patience
) -> Answer:
    rows = np.flatnonzero(table.key == key)
    part = table if len(rows) == len(table) else table.take(rows)
    promised = None if until is None else until[rows]
    if promised is not None and not (promised < NEVER).any():
        promised = None
    return _renumbered(search(part, model, patience, promised), rows)


def _renumbered(answer: Answer, rows: Ints) -> Answer:
    """The same with rows of the table that `rows` were taken of."""

    def of(own: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(rows[i]) for i in own)

    circle = tuple(
        replace(link, before=int(rows[link.before]), after=int(rows[link.after]))
        for link in answer.circle
    )
    stuck_on = None if answer.stuck_on is None else int(rows[answer.stuck_on])
    return replace(
        answer, rows=of(answer.rows), circle=circle, prefix=of(answer.prefix), stuck_on=stuck_on
    )
