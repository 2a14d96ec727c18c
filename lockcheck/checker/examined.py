"""The engines' answers about the objects of a history, and which of them excuses explain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lockcheck.checker.columns.subject import Subject
from lockcheck.checker.evidence.promise import promised_until
from lockcheck.checker.linearizability import Answer, Decision, Model, Patience, decide
from lockcheck.checker.linearizability.own_order import in_turn
from lockcheck.checker.logs.beforehand import explained
from lockcheck.checker.logs.excuses import Excuse, Excuses
from lockcheck.checker.logs.midway import cleaned, implicit_releases, with_optional_releases
from lockcheck.checker.logs.releases import as_proven
from lockcheck.checker.logs.unlogged import last_rows
from lockcheck.checker.modelling import is_lock, misfit, models_for, nested_instead
from lockcheck.history import Refusal, Terms
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.table import Ints, Mask, Table
from lockcheck.words import by_node

UNANSWERED_NS = 100 * NS_PER_MS  # no client waits for an answer for a shorter time
MOST_REPORTED = 100  # objects that are reported one by one


@dataclass(frozen=True, slots=True)
class Examined:
    """The engines' answers about one kind of object in a history."""

    decision: Decision
    excused: Mapping[int, tuple[Excuse, ...]] = field(default_factory=dict)  # keys, and why
    nested: frozenset[int] = frozenset()  # keys whose answers a reentrant lock explains

    @property
    def model(self) -> Model:
        return self.decision.model

    def wrong(self) -> Iterator[tuple[int, Answer]]:
        for key, answer in self.decision.answers.items():
            excused = key in self.excused or key in self.nested
            if answer.linearizable is False and not excused:
                yield key, answer

    def undecided(self) -> Iterator[tuple[int, Answer]]:
        answers = self.decision.answers.items()
        yield from ((key, answer) for key, answer in answers if answer.linearizable is None)


def examine(subject: Subject, patience: Patience) -> list[Examined]:
    table, terms = as_proven(subject.table, subject.terms), subject.terms
    if misfit(table, terms):
        return []
    models = models_for(terms, table)
    until = promised_until(table, terms, subject.losses, subject.ends, subject.undated)
    examination = _Examination(subject, terms, patience)
    ordered = in_turn(table, events=not terms.partial)
    # Where leases may end by themselves, only times decide.
    leased = until is not None
    return [
        examination.of(table if leased and is_lock(model) else ordered, model, until)
        for model in models
    ]


def reason_of(subject: Subject, answer: Answer) -> str:
    """The engine's sentence, with the names of nodes instead of processes."""
    return by_node(answer.reason, subject.operations(answer.named))


@dataclass(frozen=True)
class _Examination:
    subject: Subject
    terms: Terms
    patience: Patience

    def of(self, table: Table, model: Model, until: Ints | None) -> Examined:
        terms, patience = self.terms, self.patience
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
        if not wrong:
            return Examined(decision)
        counted = counted if until is not None else None
        excuses = Excuses(
            judged, counted, model, terms, patience, self._last_rows, self._may_be_done
        )
        excused, nested = excuses.of(wrong), nested_instead(model, terms)
        accused = frozenset(wrong) - excused.keys()
        if not accused or nested is None:
            return Examined(decision, excused)
        rows = np.flatnonzero(np.isin(table.key, [*accused]))
        instead = self.of(table.take(rows), nested, None if until is None else until[rows])
        return Examined(decision, excused, accused - dict(instead.wrong()).keys())

    @cached_property
    def _last_rows(self) -> dict[int, int]:
        return last_rows(self.subject.table)

    def _may_be_done(self, rows: Ints) -> Mask:
        """Which of these refused releases may have been done, since a client repeats what is not
        answered. In a run of ours that takes a fault, or a while; and a server that cannot be
        reached says so."""
        unsure = self.terms.partial or not self.terms.backend or not self.terms.tells_release
        if unsure:
            return np.ones(len(rows), np.bool_)
        disturbing = self.subject.promises.disturbing
        may_be = (
            release.refusal is not Refusal.UNAVAILABLE
            and (
                release.last_ns - release.start_ns >= UNANSWERED_NS
                or bool(disturbing(release.node, release.start_ns, release.last_ns))
            )
            for release in self.subject.operations(rows.tolist())
        )
        return np.fromiter(may_be, np.bool_, len(rows))


def key_name(table: Table, key: int) -> str:
    value = table.symbols.value(key)
    return value if isinstance(value, str) else ""
