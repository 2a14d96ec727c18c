"""What an object may have contained before its log began: a production log does not record that.

Answers that fit no order may fit one with a value, or with holders, that were there already. Only a
few such beginnings can help: values that were seen before the first change, what was read of a
counter or set, clients that released without having acquired. Each is tried: a register's as its
initial value, others as operations that were done before all others. A lock that was asked for
before may also have been granted later, or not at all. If none helps, a register began with the one
that explains its answers for longest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from lockcheck.checker.linearizability import Answer, Decision, Model, Patience, decide
from lockcheck.checker.linearizability.models import LOCKING, STORING, permits_of
from lockcheck.checker.logs.midway import early
from lockcheck.history.ordering import groups_of
from lockcheck.history.table import NEVER, NO_TOKEN, NOTHING, TYPES, Ints, Op, Outcome, Table, among

MOST_TRIED = 20
MOST_SUMS = 1_000

Before = tuple[int, ...]  # symbols of the values, or of the lock's holders


def explained(
    decision: Decision, table: Table, model: Model, until: Ints | None, patience: Patience
) -> Decision:
    """The decision without the objects that a beginning explains."""
    wrong = [key for key, each in decision.answers.items() if each.linearizable is False]
    answers = dict(decision.answers)
    parts = _parts(table, model, wrong)
    left = {key: islice(_beginnings(part, model), MOST_TRIED) for key, part in parts}
    while before := {key: way for key in left if (way := next(left[key], None)) is not None}:
        found: Mapping[int, Answer]
        if model.operations == STORING:
            found = _begun_with(table, before, model, patience)
        else:
            again, promised = _beginning_with(table, until, before, model)
            found = decide(again, model, promised, patience).answers
        for key in before:
            if key not in found:
                del answers[key], left[key]
            elif found[key].linearizable is None:
                answers[key] = Answer(None, found[key].engine, found[key].reason)
            elif model.operations == STORING and answers[key].linearizable is False:
                answers[key] = max(answers[key], found[key], key=partial(_last_ns, table))
    return replace(decision, answers=answers)


def _begun_with(
    table: Table, before: Mapping[int, Before], model: Model, patience: Patience
) -> dict[int, Answer]:
    rows = np.flatnonzero(np.isin(table.key, list(before)))
    initial = {key: value for key, (value,) in before.items()}
    answers = decide(table.take(rows), model, None, patience, initial).answers
    return {key: answer.numbered(rows) for key, answer in answers.items()}


def _last_ns(table: Table, answer: Answer) -> int:
    """When the last of the operations began that it is about."""
    return int(table.start[list(answer.rows)].max(initial=-NEVER))


def _parts(table: Table, model: Model, keys: list[int]) -> Iterator[tuple[int, Table]]:
    known = among(table.f, model.operations) & (table.outcome != Outcome.FAIL)
    rows = np.flatnonzero(known & np.isin(table.key, keys))
    for key, places in groups_of(table.key[rows]):
        yield key, table.take(rows[places])


def _beginning_with(
    table: Table, until: Ints | None, before: Mapping[int, Before], model: Model
) -> tuple[Table, Ints | None]:
    """The operations on these objects only, after those that the beginnings add."""
    rows = np.flatnonzero(np.isin(table.key, list(before)))
    time_ns = int(table.start[rows].min()) - 1
    keys = [key for key, way in before.items() for _ in way]
    what = np.array([symbol for way in before.values() for symbol in way], np.int32)
    given = {"start": time_ns, "end": time_ns, "token": NO_TOKEN, "blind": False, "unsaid": False}
    given["shared"] = False
    if model.operations == LOCKING:
        given |= {"f": Op.ACQUIRE, "outcome": Outcome.INFO, "end": NEVER}
    else:
        given |= {"f": Op.ADD, "outcome": Outcome.OK}
    added = {name: np.full(len(keys), given.get(name, NOTHING), TYPES[name]) for name in TYPES}
    added["key"] = np.array(keys, np.int32)
    for name in ("process", "owner") if model.operations == LOCKING else ("argument",):
        added[name] = what
    columns = {name: np.concatenate((added[name], getattr(table, name)[rows])) for name in TYPES}
    if until is not None:
        until = np.concatenate((np.full(len(keys), NEVER), until[rows]))
    return Table(**columns, symbols=table.symbols), until


def _beginnings(part: Table, model: Model) -> Iterator[Before]:
    """The beginnings to try for one object, whose operations are in `part`."""
    if model.operations == LOCKING:
        if model.reentrant:
            yield _levels(part)
        elif not model.owners:
            yield _holders(part, permits_of(model))
    elif model.operations == STORING:
        yield from ((value,) for value in _seen_first(part))
    elif model.many:
        yield from _in_all_reads(part)
    else:
        yield from ((part.symbols.number(number),) for number in _counted_before(part))


def _holders(part: Table, permits: int) -> Before:
    """The clients that released or renewed without an acquire, as often as grants are possible."""
    rows = early(part)
    releases = rows[part.f[rows] == Op.RELEASE]
    often = Counter(set(part.owner[rows].tolist())) | Counter(part.owner[releases].tolist())
    return tuple(owner for owner, grants in often.items() for _ in range(min(grants, permits)))


def _levels(part: Table) -> Before:
    """The clients of a reentrant lock that were inside before: they released it more often than
    they acquired it, or entered again with the token of an earlier grant, before any other was let
    in."""
    sure = part.outcome != Outcome.INFO
    entered = np.flatnonzero(sure & (part.f == Op.ACQUIRE))
    first = entered[np.argsort(part.end[entered], kind="stable")][:1]
    later = entered[part.owner[entered] != part.owner[first]]
    of_all, of_others = (part.end[rows].min(initial=NEVER) for rows in (first, later))
    before: list[int] = []
    for owner, places in groups_of(part.owner):
        until = of_others if owner in part.owner[first] else of_all
        own = places[sure[places] & (part.start[places] <= until)]
        before += [owner] * _missing(part.f[own].tolist(), part.token[own].tolist())
    return tuple(before)


def _missing(f: list[int], tokens: list[int]) -> int:
    """How many levels a client must have entered before, by its operations and their tokens."""
    inside = missing = 0
    last = None
    for op, token in zip(f, tokens, strict=True):
        again = op != Op.ACQUIRE or (token != NO_TOKEN and token == last)
        missing = max(missing, again - inside)
        inside += {Op.ACQUIRE: 1, Op.RELEASE: -1}.get(Op(op), 0)
        last = token if op == Op.ACQUIRE else last
    return missing


def _seen_first(part: Table) -> list[int]:
    """The values that operations may have seen before the first change."""
    sure = part.outcome == Outcome.OK
    changed = part.end[sure & (part.f != Op.READ)].min(initial=NEVER)
    looks = np.flatnonzero((part.f != Op.WRITE) & (part.start <= changed))
    looks = looks[np.argsort(part.end[looks], kind="stable")]
    seen = np.where(part.f[looks] == Op.READ, part.result[looks], part.argument[looks])
    return [value for value in dict.fromkeys(seen.tolist()) if value != NOTHING]


def _in_all_reads(part: Table) -> Iterator[Before]:
    """The elements of every read: nothing is removed, so they may have been there before."""
    symbols, common = part.symbols, None
    for result in dict.fromkeys(part.result[_reads(part)].tolist()):
        value = symbols.value(result)
        elements = {symbols.number(one) for one in value} if isinstance(value, list) else set()
        common = elements if common is None else common & elements
    if common:
        yield tuple(sorted(common))


def _counted_before(part: Table) -> list[int]:
    """The first value read of a counter, less what may have been added by then."""
    reads = _reads(part)
    if len(reads) == 0:
        return []
    first = reads[np.argmin(part.end[reads])]
    read = part.symbols.value(int(part.result[first]))
    adds = np.flatnonzero((part.f == Op.ADD) & (part.start <= part.end[first]))
    sums = {read} if type(read) is int else set()
    for row in adds.tolist():
        number = part.symbols.value(int(part.argument[row]))
        less = {each - number for each in sums} if type(number) is int else set()
        certain = part.outcome[row] == Outcome.OK and part.end[row] < part.start[first]
        sums = less if certain else sums | less
        if len(sums) > MOST_SUMS:
            break
    return sorted(sums - {0})


def _reads(part: Table) -> Ints:
    rows: Ints = np.flatnonzero((part.f == Op.READ) & (part.outcome == Outcome.OK))
    return rows
