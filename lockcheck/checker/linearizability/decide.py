"""Splits a history into its objects, and decides each with the fastest engine that can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lockcheck.checker.linearizability.answer import Answer, Patience, endless
from lockcheck.checker.linearizability.keepers import as_clients, has_keepers, merged_renewals
from lockcheck.checker.linearizability.models import LOCKING, SEARCH, SWEEP, ZONES, Model
from lockcheck.checker.linearizability.search.search import search
from lockcheck.checker.linearizability.sweep.sweep import sweep
from lockcheck.checker.linearizability.zones import zones
from lockcheck.history.table import NEVER, Ints, Table, among

CROSSING = "a keeper's renewal was under way while its client may have been granted the lock again"


@dataclass(frozen=True, slots=True)
class Decision:
    """What the engines found. Objects that are linearizable are only counted."""

    model: Model
    objects: int
    engines: Mapping[str, int]  # how many objects each engine decided
    answers: Mapping[int, Answer]  # by key symbol: not linearizable, or undecided

    @property
    def linearizable(self) -> bool | None:
        if any(answer.linearizable is False for answer in self.answers.values()):
            return False
        return None if self.answers else True


def decide(
    table: Table,
    model: Model,
    until: Ints | None = None,
    patience: Patience = endless,
    initial: Mapping[int, int] | None = None,
) -> Decision:
    """Decides all objects. `until`: for each granted acquire and renewal the end of its promise;
    `initial`: by key, the values of registers at the beginning that are not null."""
    rows = np.flatnonzero(among(table.f, model.operations))
    part = table if len(rows) == len(table) else table.take(rows)
    promised = None if until is None else until[rows]
    objects = _objects(part)
    if model.operations == LOCKING and has_keepers(part):
        engine, answers = _with_keepers(part, model, promised)
        part = as_clients(part)
    else:
        engine, answers = _at_once(part, model, promised, initial)
    engines = Counter({engine: objects})
    for key in [key for key, answer in answers.items() if answer.linearizable is None]:
        begun = model
        if initial and key in initial:
            begun = replace(model, initial=table.symbols.hashable(initial[key]))
        answer = _searched(part, key, begun, promised, patience)
        engines.subtract({engine: 1})
        engines.update({SEARCH: 1})
        if answer.linearizable:
            del answers[key]
        else:
            answers[key] = answer
    answers = {key: answer.numbered(rows) for key, answer in answers.items()}
    return Decision(model, objects, +engines, answers)


def _with_keepers(table: Table, model: Model, until: Ints | None) -> tuple[str, dict[int, Answer]]:
    if not model.owners:
        return _at_once(as_clients(table), model, until)
    merged = merged_renewals(table, until)
    engine, answers = _at_once(merged.table, model, merged.until)
    answers = {key: answer.numbered(merged.rows) for key, answer in answers.items()}
    return engine, answers | dict.fromkeys(merged.ambiguous, Answer(None, engine, CROSSING))


def _objects(table: Table) -> int:
    """The number of keys; counting each number is faster than sorting them."""
    if len(table) == 0:
        return 0
    return int(np.count_nonzero(np.bincount(table.key + 1)))


def _at_once(
    table: Table, model: Model, until: Ints | None, initial: Mapping[int, int] | None = None
) -> tuple[str, dict[int, Answer]]:
    """Decides all objects with an engine that does not search; others are left to the search."""
    if model.engine == SWEEP:
        return SWEEP, dict(sweep(table, model, until))
    if model.engine == ZONES:
        return ZONES, dict(zones(table, initial))
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
    return search(part, model, patience, promised).numbered(rows)
