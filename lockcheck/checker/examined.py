"""The engines' answers about the objects of a history, and which of them excuses explain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from lockcheck.checker.columns.subject import Subject
from lockcheck.checker.evidence.promise import promised_until
from lockcheck.checker.evidence.same_grant import granted_again
from lockcheck.checker.linearizability import Answer, Decision, Model, Patience, decide
from lockcheck.checker.linearizability.own_order import in_turn
from lockcheck.checker.linearizability.search.search import BRIEF, Brief
from lockcheck.checker.logs.afterwards import Reading, Span, afterwards
from lockcheck.checker.logs.beforehand import explained
from lockcheck.checker.logs.excuses import Excuse, Excuses
from lockcheck.checker.logs.midway import cleaned, implicit_releases, with_optional_releases
from lockcheck.checker.logs.releases import as_proven
from lockcheck.checker.logs.unlogged import last_rows
from lockcheck.checker.modelling import is_lock, misfit, models_for, nested_instead
from lockcheck.history import Refusal, Terms
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.table import Ints, Mask, Op, Table
from lockcheck.words import by_node

UNANSWERED_NS = 100 * NS_PER_MS  # no client waits for an answer for a shorter time
MOST_REPORTED = 100  # objects that are reported one by one


@dataclass(frozen=True, slots=True)
class Examined:
    """The engines' answers about one kind of object in a history."""

    decision: Decision
    excused: Mapping[int, tuple[Excuse, ...]] = field(default_factory=dict)  # keys, and why
    nested: frozenset[int] = frozenset()  # keys whose answers a reentrant lock explains
    further: Mapping[int, list[Answer]] = field(default_factory=dict)  # of accused keys, in time

    @property
    def model(self) -> Model:
        return self.decision.model

    def wrong(self) -> Iterator[tuple[int, Answer]]:
        """All contradictions, key by key."""
        for key, answer in self.decision.answers.items():
            excused = key in self.excused or key in self.nested
            if answer.linearizable is False and not excused:
                yield key, answer
                yield from ((key, each) for each in self.further.get(key, ()))

    def undecided(self) -> Iterator[tuple[int, Answer]]:
        answers = self.decision.answers.items()
        yield from ((key, answer) for key, answer in answers if answer.linearizable is None)


def examine(subject: Subject, patience: Patience) -> list[Examined]:
    table, terms = as_proven(subject.table, subject.terms), subject.terms
    if misfit(table, terms):
        return []
    models = models_for(terms, table)
    known = subject.losses, subject.ends, subject.undated
    until = promised_until(table, terms, *known, turns=subject.turns)
    examination = _Examination(subject, terms, patience)
    ordered = in_turn(table, events=not terms.partial)
    found = []
    for model in models:
        # Where leases may end by themselves, only times decide.
        rows = table if until is not None and is_lock(model) else ordered
        if model.tokens and not model.reentrant:
            again = granted_again(subject.table, terms)
            rows = (
                replace(rows, f=np.where(again, np.int8(Op.RENEW), rows.f)) if again.any() else rows
            )
        found.append(examination.of(rows, model, until))
    return found


def reason_of(subject: Subject, answer: Answer) -> str:
    """The engine's sentence, with the names of nodes instead of processes."""
    return by_node(answer.reason, subject.operations(answer.named))


@dataclass(frozen=True)
class _Examination:
    subject: Subject
    terms: Terms
    patience: Patience

    def of(self, table: Table, model: Model, until: Ints | None) -> Examined:
        """With what contradicts itself later, by each of the readings that are possible."""
        first = self._of_first(table, model, until)
        wrong, nested = dict(first.wrong()), nested_instead(model, self.terms)
        readings = [self._read(table, each, until) for each in (model, nested) if each and wrong]
        if not all(reading.can_begin_anyhow for reading in readings):
            return first
        return replace(
            first, further=afterwards(table, wrong, partial(self._contradicted, readings))
        )

    def _of_first(self, table: Table, model: Model, until: Ints | None) -> Examined:
        terms, patience = self.terms, self.patience
        read = self._read(table, model, until)
        decision = decide(read.table, model, read.until, patience)
        if terms.partial:
            decision = explained(decision, read.table, model, read.until, patience)
        wrong = [key for key, _ in Examined(decision).wrong()]
        if not wrong:
            return Examined(decision)
        excused, nested = self._excused(read, wrong, patience), nested_instead(model, terms)
        accused = frozenset(wrong) - excused.keys()
        if not accused or nested is None:
            return Examined(decision, excused)
        rows = np.flatnonzero(np.isin(table.key, [*accused]))
        promised = None if until is None else until[rows]
        instead = self._of_first(table.take(rows), nested, promised)
        return Examined(decision, excused, accused - dict(instead.wrong()).keys())

    def _read(self, table: Table, model: Model, until: Ints | None) -> Reading:
        until = until if is_lock(model) else None
        if not self.terms.partial or not is_lock(model):
            return Reading(table, until, model, until is not None)
        counted = until if model.reentrant else implicit_releases(table, until)
        once = model.owners and not model.reentrant
        judged = cleaned(table) if once else with_optional_releases(table)
        return Reading(judged, counted, model, until is not None)

    def _excused(
        self, read: Reading, wrong: list[int], patience: Patience
    ) -> dict[int, tuple[Excuse, ...]]:
        def may_be_done(rows: Ints) -> Mask:
            return self._may_be_done(rows if read.rows is None else read.rows[rows])

        until = read.until if read.leased else None
        excuses = Excuses(
            read.table, until, read.model, self.terms, patience, self._last_rows, may_be_done
        )
        return excuses.of(wrong)

    def _contradicted(
        self, readings: list[Reading], spans: Mapping[int, Span]
    ) -> dict[int, Answer]:
        """The answers of the first reading, where all of them accuse. What takes long is left."""
        found: dict[int, Answer] = {}
        patience = Brief(self.patience, BRIEF + 2 * len(spans)).patience
        for number, read in enumerate(readings):
            part = read.part(spans)
            decision = decide(part.table, read.model, part.until, patience)
            answers = dict(Examined(decision).wrong())
            if answers:
                excused = self._excused(part, [*answers], patience)
                answers = {key: answers[key] for key in answers if key not in excused}
            if not number:
                found = {key: part.numbered(answer) for key, answer in answers.items()}
            spans = {key: span for key, span in spans.items() if key in answers}
            if not spans:
                break
        return {key: found[key] for key in spans}

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
