"""The engines' answers about the objects of a history, and which of them excuses explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lockcheck.checker.columns.subject import Subject
from lockcheck.checker.evidence.promise import promised_until
from lockcheck.checker.linearizability import Answer, Decision, Model, Patience, decide
from lockcheck.checker.logs.beforehand import explained
from lockcheck.checker.logs.forgiven import forgiven_keys, without_blind_releases
from lockcheck.checker.logs.midway import cleaned, implicit_releases, with_optional_releases
from lockcheck.checker.modelling import is_lock, misfit, models_for, nested_instead
from lockcheck.history import Terms
from lockcheck.history.table import Ints, Table
from lockcheck.words import by_node

MOST_REPORTED = 100  # objects that are reported one by one


@dataclass(frozen=True, slots=True)
class Examined:
    """The engines' answers about one kind of object in a history."""

    decision: Decision
    forgiven: frozenset[int] = frozenset()  # keys whose answers refused releases explain
    nested: frozenset[int] = frozenset()  # keys whose answers a reentrant lock explains

    @property
    def model(self) -> Model:
        return self.decision.model

    def wrong(self) -> Iterator[tuple[int, Answer]]:
        for key, answer in self.decision.answers.items():
            if answer.linearizable is False and key not in self.forgiven | self.nested:
                yield key, answer

    def undecided(self) -> Iterator[tuple[int, Answer]]:
        answers = self.decision.answers.items()
        yield from ((key, answer) for key, answer in answers if answer.linearizable is None)


def examine(subject: Subject, patience: Patience) -> list[Examined]:
    table, terms = without_blind_releases(subject.table), subject.terms
    if misfit(table, terms):
        return []
    models = models_for(terms, table)
    until = promised_until(table, terms, subject.losses, subject.ends)
    if subject.shared:  # there is no model of a lock that some share
        models = [model for model in models if not is_lock(model)]
    return [_examined(table, model, until, terms, patience) for model in models]


def reason_of(subject: Subject, answer: Answer) -> str:
    """The engine's sentence, with the names of nodes instead of processes."""
    return by_node(answer.reason, subject.operations(answer.named))


def _examined(
    table: Table, model: Model, until: Ints | None, terms: Terms, patience: Patience
) -> Examined:
    until = until if is_lock(model) else None
    judged, counted = table, until
    if terms.partial and is_lock(model):
        counted = until if model.reentrant else implicit_releases(table, until)
        once = model.owners and not model.reentrant
        judged = cleaned(table) if once else with_optional_releases(table)
    decision = decide(judged, model, counted, patience)
    if terms.partial:
        decision = explained(decision, judged, model, counted, patience)
    wrong = [key for key, _ in Examined(decision).wrong()]
    if not wrong or not model.owners:
        return Examined(decision)
    counted = counted if until is not None else None
    forgiven = forgiven_keys(judged, model, counted, wrong, patience, partial=terms.partial)
    accused, nested = frozenset(wrong) - forgiven, nested_instead(model, terms)
    if not accused or nested is None:
        return Examined(decision, forgiven)
    rows = np.flatnonzero(np.isin(table.key, [*accused]))
    promised = None if until is None else until[rows]
    instead = _examined(table.take(rows), nested, promised, terms, patience)
    return Examined(decision, forgiven, accused - dict(instead.wrong()).keys())


def key_name(table: Table, key: int) -> str:
    value = table.symbols.value(key)
    return value if isinstance(value, str) else ""
