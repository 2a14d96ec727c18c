"""What contradicts itself after the first contradiction of an object is over.

By then, anything may be in the object: what was written or granted before may take effect late, and
a wrong answer may come again. So only operations count that began afterwards. A register may hold
each value that was seen before once more. Of a lock, what a client does counts from a grant on that
it asked for afterwards, or, where it may have several, if it had certainly given back all; and not
if anything is still open that it asked for before. Answers that exclude each other even so are no
echo of those before. They are looked for in a few operations, then in twice as many, on all objects
at once.

Of locks that any client releases, or that several hold with leases, and of sets and counters, only
the first contradiction is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lockcheck.checker.linearizability import Answer, Model
from lockcheck.checker.linearizability.models import LOCKING, SWEEP, ZONES
from lockcheck.history.ordering import groups_of
from lockcheck.history.table import NEVER, NOTHING, Ints, Op, Outcome, Table, among

FEW = 64  # operations
MOST = 100  # contradictions of an object, after the first
LATER = "its later answers exclude each other, whatever it was before"
ADDED = -1  # in place of a row: what may have been there before
NOT_ADDED = -2  # in place of a value


@dataclass(frozen=True, slots=True)
class Span:
    """The operations of an object that began between two times."""

    after_ns: int
    last_ns: int


@dataclass(slots=True)
class _Object:
    start: Ints
    over_ns: int  # the end of the last contradiction
    size: int = FEW

    @property
    def first(self) -> int:
        return int(np.searchsorted(self.start, self.over_ns, "right"))

    @property
    def span(self) -> Span | None:
        """None: nothing is left."""
        first = self.first
        if first == len(self.start):
            return None
        beyond = first + self.size
        last_ns = NEVER if beyond >= len(self.start) else int(self.start[beyond - 1])
        return Span(self.over_ns, last_ns)


def afterwards(
    table: Table,
    answers: Mapping[int, Answer],
    judged: Callable[[Mapping[int, Span]], Mapping[int, Answer]],
) -> dict[int, list[Answer]]:
    """The further contradictions of objects, after the one in `answers`. `judged` has the answers
    that accuse, of the operations in these spans."""
    objects = {
        key: _Object(table.start[rows], over_ns)
        for key, rows in groups_of(table.key)
        if key in answers and (over_ns := _over_ns(table, answers[key])) is not None
    }
    found: dict[int, list[Answer]] = {}
    while spans := {key: span for key, each in objects.items() if (span := each.span) is not None}:
        wrong = judged(spans)
        objects = {key: objects[key] for key in spans if key in wrong or spans[key].last_ns < NEVER}
        for key, each in objects.items():
            if key not in wrong:
                each.size *= 2
                continue
            found.setdefault(key, []).append(wrong[key])
            over_ns = _over_ns(table, wrong[key]) if len(found[key]) < MOST else None
            each.over_ns, each.size = NEVER if over_ns is None else over_ns, FEW
    return found


def _over_ns(table: Table, answer: Answer) -> int | None:
    """When all answers that it is about had come; None if it does not say which those are."""
    rows = list(answer.rows if answer.stuck_on is None else (answer.stuck_on,))
    end = table.end[rows]
    return int(np.where(end == NEVER, table.start[rows], end).max()) if rows else None


@dataclass(frozen=True)
class Reading:
    """The operations as a model judges them."""

    table: Table
    until: Ints | None
    model: Model
    leased: bool = False  # some promises have an end
    rows: Ints | None = None  # of the history, where this is a part of it

    @cached_property
    def _by_key(self) -> dict[int, Ints]:
        return dict(groups_of(self.table.key))

    @property
    def can_begin_anyhow(self) -> bool:
        locks = self.model.engine == SWEEP and self.model.owners
        # Without those that held it before, too many leases may have ended or not.
        return self.model.engine == ZONES or (locks and not (self.model.crowd and self.leased))

    def part(self, spans: Mapping[int, Span]) -> Reading:
        of_key = self._of_lock if self.model.operations == LOCKING else self._of_register
        each = [of_key(self._by_key[key], span) for key, span in spans.items()]
        rows, unsure, values = (np.concatenate(column) for column in zip(*each, strict=True))
        table, added = self.table.take(rows), values != NOT_ADDED
        table.f[added], table.argument[added] = Op.WRITE, values[added]
        table.start[added] = np.repeat(
            [span.after_ns for span in spans.values()], [len(one) for one, *_ in each]
        )[added]
        table.turn[added] = NOTHING
        table.outcome[unsure | added], table.end[unsure | added] = Outcome.INFO, NEVER
        order = np.argsort(table.start, kind="stable")
        until = None if self.until is None else self.until[rows][order]
        numbers = np.where(added, ADDED, rows)[order]
        return replace(self, table=table.take(order), until=until, rows=numbers)

    def _split(self, rows: Ints, span: Span) -> tuple[Ints, Ints]:
        """The rows up to the span, and those in it."""
        start = self.table.start[rows]
        first, last = (np.searchsorted(start, at, "right") for at in (span.after_ns, span.last_ns))
        return rows[:first], rows[first:last]

    def _of_register(self, rows: Ints, span: Span) -> tuple[Ints, Ints, Ints]:
        table = self.table
        before, rows = self._split(rows, span)
        unsure = (table.outcome[rows] == Outcome.INFO) | (table.end[rows] > span.last_ns)
        kept = (table.outcome[rows] != Outcome.FAIL) & ~(unsure & (table.f[rows] == Op.READ))
        rows, unsure = rows[kept], unsure[kept]
        again = np.intersect1d(_values(table, before), _values(table, rows))
        of_null = (table.f[before] == Op.WRITE) & (table.argument[before] == NOTHING)
        of_null |= (table.f[before] == Op.CAS) & (table.second[before] == NOTHING)
        again = again[(again != NOTHING) | of_null.any()]
        rows = np.concatenate((np.repeat(before[-1:], len(again)), rows))
        unsure = np.concatenate((np.ones(len(again), np.bool_), unsure))
        values = np.concatenate((again, np.full(len(rows) - len(again), NOT_ADDED)))
        return rows, unsure, values

    def _of_lock(self, rows: Ints, span: Span) -> tuple[Ints, Ints, Ints]:
        table = self.table
        before, rows = self._split(rows, span)
        kept = among(table.f[rows], LOCKING)
        rows = rows[kept]
        f, owner, failed = table.f[rows], table.owner[rows], table.outcome[rows] == Outcome.FAIL
        unsure = (table.outcome[rows] == Outcome.INFO) | (table.end[rows] > span.last_ns)
        late = (table.outcome[before] == Outcome.INFO) & (table.f[before] != Op.RENEW)
        late |= (table.outcome[before] != Outcome.FAIL) & (table.end[before] > span.after_ns)
        counts = ~np.isin(owner, table.owner[before[late]])
        if self.model.reentrant or self.model.crowd:
            counts &= ~np.isin(owner, self._inside(before))
        else:
            granted = (f == Op.ACQUIRE) & ~failed & ~unsure
            first = dict(
                zip(owner[granted][::-1].tolist(), rows[granted][::-1].tolist(), strict=True)
            )
            since = np.array([first.get(each, NEVER) for each in owner.tolist()], np.int64)
            counts &= (rows >= since) | ((table.outcome[rows] == Outcome.INFO) & (since < NEVER))
        unsure &= ~failed
        kept = failed | (counts & ~(unsure & (f == Op.RENEW)))
        return rows[kept], unsure[kept], np.full(np.count_nonzero(kept), NOT_ADDED)

    def _inside(self, before: Ints) -> list[int]:
        """The clients that may still have a grant."""
        table, grants = self.table, Counter[int]()
        columns = (table.f[before], table.owner[before], table.outcome[before])
        for f, owner, outcome in zip(*(column.tolist() for column in columns), strict=True):
            if f == Op.ACQUIRE and outcome != Outcome.FAIL:
                grants[owner] += 1
            elif f == Op.RELEASE and outcome == Outcome.OK and grants[owner]:
                grants[owner] -= 1
        return [owner for owner, number in grants.items() if number]

    def numbered(self, answer: Answer) -> Answer:
        """The same answer with rows of the history."""
        if self.rows is None:
            return answer
        if (self.rows[list(answer.evidence)] != ADDED).all():
            return answer.numbered(self.rows)
        known = tuple(row for row in self.rows[list(answer.rows)].tolist() if row != ADDED)
        return Answer(False, answer.engine, LATER, known)


def _values(table: Table, rows: Ints) -> Ints:
    """The values that these rows saw or wrote, or may have."""
    columns = (table.argument[rows], table.second[rows], table.result[rows])
    return np.unique(np.concatenate(columns))
