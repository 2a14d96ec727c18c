"""What the two definitions of a violation say of each object, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from lockcheck.checker.columns.subject import Subject
from lockcheck.checker.examined import MOST_TOLD, Examined, key_name, reason_of
from lockcheck.checker.finding import Definition, Verdict
from lockcheck.checker.linearizability import Answer, Model
from lockcheck.checker.modelling import is_lock
from lockcheck.history.table import Op, Table, among
from lockcheck.words import amount

SHARED = "shared lock"


def definitions(
    subject: Subject, examined: Iterable[Examined], overlaps: Counter[str]
) -> Iterator[Definition]:
    """`overlaps`: how many were found of each key. Objects with nothing to tell are one entry."""
    if subject.shared:
        yield from _of_shared_locks(subject.table, overlaps)
    for each in examined:
        lock = is_lock(each.model)
        answers = {key_name(subject.table, key): a for key, a in each.decision.answers.items()}
        names = sorted({*answers, *(overlaps if lock else ())})
        for name in names[:MOST_TOLD]:
            answer = answers.get(name)
            reason = reason_of(subject, answer) if answer else ""
            yield _definition(each, name, answer, overlaps[name] if lock else None, reason)
        quiet = each.decision.objects - len(names)
        if quiet > 0:
            name = _only_key(subject.table, each.model) if quiet == 1 and not names else ""
            name = name or amount(quiet, "other" if names else "object")
            yield _definition(each, name, None, 0 if lock else None)


def _of_shared_locks(table: Table, overlaps: Counter[str]) -> Iterator[Definition]:
    for key in np.unique(table.key[table.f == Op.ACQUIRE]).tolist()[:MOST_TOLD]:
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
    return Definition(
        key=name,
        model=each.model.name,
        engine=engine,
        linearizable=_verdict(answer),
        overlaps=overlaps,
        reason=reason,
    )


def _verdict(answer: Answer | None) -> Verdict:
    if answer is None:
        return Verdict.OK
    return Verdict.VIOLATION if answer.linearizable is False else Verdict.UNKNOWN
