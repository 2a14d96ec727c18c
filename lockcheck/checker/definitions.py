"""What the two definitions of a violation find for each object, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from lockcheck.checker.columns.subject import Subject
from lockcheck.checker.examined import MOST_REPORTED, Examined, key_name, reason_of
from lockcheck.checker.finding import Definition, Verdict
from lockcheck.checker.linearizability import Answer, Model
from lockcheck.checker.modelling import is_lock
from lockcheck.history.table import Op, Table, among
from lockcheck.words import amount

SHARED = "shared lock"  # in place of a model, where there is none


def definitions(
    subject: Subject, examined: Sequence[Examined], overlaps: Counter[str]
) -> Iterator[Definition]:
    """`overlaps`: the number of them by key. All objects without a finding share one entry."""
    if subject.table.shared.any() and not any(is_lock(each.model) for each in examined):
        yield from _of_shared_locks(subject.table, overlaps)
    for each in examined:
        lock = is_lock(each.model)
        answers = {key_name(subject.table, key): a for key, a in each.decision.answers.items()}
        names = sorted({*answers, *(overlaps if lock else ())})
        for name in names[:MOST_REPORTED]:
            answer = answers.get(name)
            reason = reason_of(subject, answer) if answer else ""
            yield _definition(each, name, answer, overlaps[name] if lock else None, reason)
        quiet = each.decision.objects - len(names)
        if quiet > 0:
            name = _only_key(subject.table, each.model) if quiet == 1 and not names else ""
            name = name or amount(quiet, "other" if names else "object")
            yield _definition(each, name, None, 0 if lock else None)


def _of_shared_locks(table: Table, overlaps: Counter[str]) -> Iterator[Definition]:
    for key in np.unique(table.key[table.f == Op.ACQUIRE]).tolist()[:MOST_REPORTED]:
        name = key_name(table, key)
        yield Definition(name, SHARED, "", Verdict.UNKNOWN, overlaps[name])


def _only_key(table: Table, model: Model) -> str:
    rows = np.flatnonzero(among(table.f, model.operations))
    return key_name(table, int(table.key[rows[0]]))


def _definition(
    each: Examined, name: str, answer: Answer | None, overlaps: int | None, reason: str = ""
) -> Definition:
    engines = each.decision.engines
    engine = answer.engine if answer else max(engines, key=lambda e: engines[e], default="")
    return Definition(name, each.model.name, engine, _verdict(answer), overlaps, reason)


def _verdict(answer: Answer | None) -> Verdict:
    if answer is None:
        return Verdict.OK
    return Verdict.VIOLATION if answer.linearizable is False else Verdict.UNKNOWN
