"""No order of the operations explains the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from lockcheck.checker.blame import Court
from lockcheck.checker.check import Check
from lockcheck.checker.finding import Blame, Code, Culprit, Definition, Finding, Verdict
from lockcheck.checker.guard import effect_of
from lockcheck.checker.linearizability import Answer, Decision, Model, Patience, decide, endless
from lockcheck.checker.linearizability.models import LOCKING, MODELS, semaphore
from lockcheck.checker.subject import Subject, Whole
from lockcheck.checker.telling import told
from lockcheck.history import F, History, Hold, Operation, Terms
from lockcheck.history.event import NS_PER_MS, Event
from lockcheck.history.guess import models_of
from lockcheck.history.table import NEVER, NOTHING, Ints, Op, Outcome, Table

SEMAPHORE = "semaphore"
STORED = frozenset({Op.READ, Op.WRITE, Op.CAS, Op.ADD})
MOST_TOLD = 100  # objects that are told of one by one
DRIFT = 100  # clocks that drift by less than one part in so many are right enough
MOST_STEPS = 12  # of an order or a circle that are written out


@dataclass(frozen=True, slots=True)
class Examined:
    """What the engines say of one kind of object in a history."""

    decision: Decision
    forgiven: frozenset[int]  # keys for which releases that were refused explain it

    @property
    def model(self) -> Model:
        return self.decision.model

    def wrong(self) -> Iterator[tuple[int, Answer]]:
        answers = self.decision.answers.items()
        yield from ((key, answer) for key, answer in answers if answer.linearizable is False)

    def untold(self) -> Iterator[tuple[int, Answer]]:
        answers = self.decision.answers.items()
        yield from ((key, answer) for key, answer in answers if answer.linearizable is None)


def examine(subject: Subject, patience: Patience) -> list[Examined]:
    if subject.shared:
        return []  # there is no model of a lock that some share
    table, terms = _without_blind_releases(subject.table), subject.terms
    if misfit(table, terms):
        return []
    until = promised_until(table, terms, subject.losses)
    models = models_for(terms, table)
    return [_examined(table, model, until, terms.partial, patience) for model in models]


def models_for(terms: Terms, table: Table) -> list[Model]:
    """The model that was asked for, and for what is of another family what it looks like."""
    asked = [_model(terms.model, terms.permits)] if terms.model in MODELS else []
    guessed = [_model(name, terms.permits) for name in models_of(table)]
    families = {_is_lock(model) for model in asked}
    return asked + [model for model in guessed if _is_lock(model) not in families]


def _model(name: str, permits: int) -> Model:
    if name == SEMAPHORE or (permits > 1 and MODELS[name].operations == LOCKING):
        return semaphore(max(permits, 1))
    return MODELS[name]


def _is_lock(model: Model) -> bool:
    return model.operations == LOCKING


def misfit(table: Table, terms: Terms) -> str:
    """Why a history cannot be judged by the model that its terms name; empty: it can."""
    if not terms.model:
        return ""
    if terms.model not in MODELS:
        return f"there is no model {terms.model!r}: known are {', '.join(MODELS)}"
    if terms.permits > 1 and terms.model not in (SEMAPHORE, ""):
        return f"the model {terms.model} has no permits: those are a semaphore's"
    model = MODELS[terms.model]
    there = {Op(f) for f in np.unique(table.f).tolist()}
    family = there & (LOCKING if _is_lock(model) else STORED)
    unknown = sorted(family - model.operations)
    if there and not family:
        unknown = sorted(there)
    names = ", ".join(op.name.lower() for op in unknown)
    return f"the model {model.name} does not know {names}" if unknown else ""


def _examined(
    table: Table, model: Model, until: Ints | None, partial: bool, patience: Patience
) -> Examined:
    is_lock = _is_lock(model)
    until = until if is_lock else None
    decision = decide(table, model, until, patience)
    wrong = [key for key, answer in decision.answers.items() if answer.linearizable is False]
    if not wrong or not model.owners:
        return Examined(decision, frozenset())
    return Examined(decision, _forgiven(table, model, until, wrong, patience, partial=partial))


def promised_until(table: Table, terms: Terms, losses: Iterable[Event]) -> Ints | None:
    """Until when each grant and renewal was promised; None where nothing says so.

    A lease runs from its invocation, and by the clock of the service, which may be a little faster
    than the one that we know. Without a lease, a client that is told that it lost the lock (its
    session expired, its renewal was refused) had been promised it up to that moment.
    """
    ttl_ms = np.where(table.ttl_ms > 0, table.ttl_ms, terms.ttl_ms or 0).astype(np.int64)
    granted = (table.outcome == Outcome.OK) & ((table.f == Op.ACQUIRE) | (table.f == Op.RENEW))
    lease_ns = ttl_ms * NS_PER_MS
    until = np.where(granted & (ttl_ms > 0), table.start + lease_ns - lease_ns // DRIFT, NEVER)
    endless = granted & (until == NEVER)
    refused = (table.f == Op.RENEW) & (table.outcome == Outcome.FAIL)
    told = [(table.process[row], table.key[row], table.end[row]) for row in np.flatnonzero(refused)]
    told += [(table.symbols.number(e.process), table.symbols.number(e.key), e.time) for e in losses]
    for loss in told if endless.any() else ():
        rows = _granted_before(table, *loss)
        until[rows[until[rows] == NEVER]] = loss[2]
    return until if (until < NEVER).any() else None


def _granted_before(table: Table, process: int, key: int, time_ns: int) -> Ints:
    """The last grant before that moment, and the renewals since."""
    rows = np.flatnonzero(
        (table.process == process)
        & (table.key == key)
        & np.isin(table.f, (Op.ACQUIRE, Op.RENEW))
        & (table.outcome == Outcome.OK)
        & (table.end <= time_ns)
    )
    grants = np.flatnonzero(table.f[rows] == Op.ACQUIRE)
    return rows[grants[-1] :] if len(grants) else rows[:0]


def _without_blind_releases(table: Table) -> Table:
    """A release that does not look whose lock it removes tells nothing of who had it."""
    said = (table.f == Op.RELEASE) & (table.outcome == Outcome.OK) & (table.result != NOTHING)
    blind = [n for n in np.unique(table.result[said]).tolist() if _is_blind(table, n)]
    if not blind:
        return table
    rows = said & np.isin(table.result, blind)
    return _unconfirmed(table, rows)


def _is_blind(table: Table, result: int) -> bool:
    value = table.symbols.value(result)
    return isinstance(value, dict) and value.get("blind") is True


def _unconfirmed(table: Table, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Table:
    outcome = np.where(rows, Outcome.INFO, table.outcome).astype(np.int8)
    return replace(table, outcome=outcome, end=np.where(rows, NEVER, table.end))


def _forgiven(
    table: Table,
    model: Model,
    until: Ints | None,
    keys: list[int],
    patience: Patience,
    *,
    partial: bool,
) -> frozenset[int]:
    """Keys for which something else may explain it, so that nobody can be accused.

    A release that was refused (`not-owner`) says that the caller's lock was gone by then: by a
    lease that we know nothing of, or by the same release, sent twice. A log that begins in the
    middle begins with releases of what was granted before; and where it tells of no lease at all,
    a holder that is not heard of again may have lost it by one.
    """
    rows = np.flatnonzero(np.isin(table.key, keys))
    part = table.take(rows)
    lenient, held = part, None if until is None else until[rows]
    refused = (part.f == Op.RELEASE) & (part.outcome == Outcome.FAIL)
    if refused.any():
        lenient = _unconfirmed(lenient, refused)
    if partial:
        early = _before_any_grant(part)
        lenient = replace(lenient, outcome=np.where(early, Outcome.FAIL, lenient.outcome))
        if held is None:
            grants = (part.f == Op.ACQUIRE) & (part.outcome == Outcome.OK)
            held = np.where(grants, part.end, NEVER)
    if lenient is part and held is until:
        return frozenset()
    again = decide(lenient, model, held, patience)
    return frozenset(keys) - again.answers.keys()


def _before_any_grant(table: Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Releases and renewals of those who had not asked for anything before."""
    asked: set[tuple[int, int]] = set()
    early = np.zeros(len(table), bool)
    for row, (f, process, key) in enumerate(
        zip(table.f.tolist(), table.process.tolist(), table.key.tolist(), strict=True)
    ):
        if f == Op.ACQUIRE:
            asked.add((process, key))
        elif f in (Op.RELEASE, Op.RENEW):
            early[row] = (process, key) not in asked
    return early


FORGIVEN = (
    "no order explains the answers about {name}, unless its lock has a lease that nothing tells of,"
    " or was held before the history began: if it has a lease, say how long (--ttl); if neither is"
    " so, it is a violation"
)


# --- findings ------------------------------------------------------------------------------------


def findings(subject: Subject, examined: Iterable[Examined]) -> Iterator[Finding]:
    for each in examined:
        wrong = [pair for pair in each.wrong() if pair[0] not in each.forgiven]
        for key, answer in wrong[:MOST_TOLD]:
            yield _finding(subject, each, key, answer)


def doubts(subject: Subject, examined: Iterable[Examined]) -> Iterator[str]:
    wrong = misfit(subject.table, subject.terms)
    if wrong:
        yield f"{wrong}: what it says of these operations tells nothing"
    for each in examined:
        name = each.model.name
        for key, answer in list(each.untold())[:MOST_TOLD]:
            which = _name(subject.table, key)
            why = answer.reason or "patience ran out"
            yield f"whether {which} fits the model {name} could not be told: {why}"
        for key in sorted(each.forgiven)[:MOST_TOLD]:
            yield FORGIVEN.format(name=_name(subject.table, key))


def _finding(subject: Subject, examined: Examined, key: int, answer: Answer) -> Finding:
    rows = answer.rows or (() if answer.stuck_on is None else (answer.stuck_on,))
    operations = subject.operations(rows)
    holds, blame = _blame(subject, examined.model, rows, operations)
    return Finding(
        code=Code.NOT_LINEARIZABLE,
        key=_key(subject.table, key),
        time_ns=max((operation.start_ns for operation in operations), default=0),
        effect=_effect(subject.terms, examined.model, blame),
        holds=holds,
        operations=tuple(operations),
        length_ns=0,
        blame=blame,
        note=f"{answer.reason[:1].upper()}{answer.reason[1:]}.".replace("..", "."),
        steps=tuple(_steps(subject, examined.model, answer)),
        otherwise=_otherwise(examined.model),
    )


def _effect(terms: Terms, model: Model, blame: Blame) -> Verdict:
    """What is stored has to be right whatever the lock does, and behind every guard."""
    if not _is_lock(model):
        return Verdict.VIOLATION
    return effect_of(terms, Code.NOT_LINEARIZABLE, blame)


def _blame(
    subject: Subject, model: Model, rows: tuple[int, ...], operations: list[Operation]
) -> tuple[tuple[Hold, ...], Blame]:
    """Of a lock: that of the two holds that exclude each other, where there are two."""
    service = Blame(Culprit.SERVICE, 0, None)
    if not _is_lock(model):
        return (), service
    history = subject.around([np.array(rows)])
    granted = {(hold.process, hold.key, hold.start_ns): hold for hold in history.holds}
    found = (granted.get((o.process, o.key, o.end_ns or 0)) for o in operations if _grants(o))
    holds = [hold for hold in found if hold is not None]
    if len(holds) != 2 or holds[0].process == holds[1].process:
        return tuple(holds), service
    court = Court(history)
    earlier, later = court.in_order(*holds)
    blame = court.blame(earlier, later)
    return (earlier, later), blame if blame.who is not Culprit.HOLDER else service


def _grants(operation: Operation) -> bool:
    return operation.f == F.ACQUIRE and operation.ok


def _steps(subject: Subject, model: Model, answer: Answer) -> Iterator[str]:
    yield f"Judged by the model {model.name}: {model.meaning}."
    if answer.circle:
        for link in answer.circle[:MOST_STEPS]:
            before, after = subject.operations((link.before, link.after))
            yield f"{told(before)} has to come before {told(after)}: {link.reason}."
        yield "That is a circle, so no order can be right."
    elif answer.prefix:
        last = answer.prefix[-MOST_STEPS:]
        yield f"The longest order that is right has {len(answer.prefix)} operations; it ends with:"
        yield from (told(operation) for operation in subject.operations(last))
        if answer.stuck_on is not None:
            [stuck] = subject.operations((answer.stuck_on,))
            yield f"No order can go on past {told(stuck)}."


def _otherwise(model: Model) -> str:
    if _is_lock(model):
        return "One of these answers would have had to be a refusal, or to come at another time."
    return "One of these would have had to answer with another value, or at another time."


# --- side by side --------------------------------------------------------------------------------


def definitions(
    subject: Subject, examined: Iterable[Examined], overlaps: Counter[str]
) -> Iterator[Definition]:
    """`overlaps`: how many were found of each key. Objects with nothing to tell are one entry."""
    for each in examined:
        is_lock = _is_lock(each.model)
        answers = {_key(subject.table, key): a for key, a in each.decision.answers.items()}
        names = sorted({*answers, *(overlaps if is_lock else ())})
        for name in names[:MOST_TOLD]:
            yield _definition(each, name, answers.get(name), overlaps[name] if is_lock else None)
        quiet = each.decision.objects - len(names)
        if quiet > 0:
            name = _only_key(subject.table, each.model) if quiet == 1 and not names else ""
            name = name or _amount(quiet, "other" if names else "object")
            yield _definition(each, name, None, 0 if is_lock else None)


def _amount(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _only_key(table: Table, model: Model) -> str:
    rows = np.flatnonzero(np.isin(table.f, [int(f) for f in model.operations]))
    return _key(table, int(table.key[rows[0]]))


def _definition(
    each: Examined, name: str, answer: Answer | None, overlaps: int | None
) -> Definition:
    engines = each.decision.engines
    engine = answer.engine if answer else max(engines, key=lambda e: engines[e], default="")
    verdict = _verdict(answer)
    return Definition(
        key=name,
        model=each.model.name,
        engine=engine,
        linearizable=verdict,
        overlaps=overlaps,
        sentence=_sentence(each.model, verdict, overlaps, answer),
    )


def _verdict(answer: Answer | None) -> Verdict:
    if answer is None:
        return Verdict.OK
    return Verdict.VIOLATION if answer.linearizable is False else Verdict.UNKNOWN


def _sentence(model: Model, verdict: Verdict, overlaps: int | None, answer: Answer | None) -> str:
    reason = answer.reason if answer else ""
    if verdict is Verdict.UNKNOWN:
        return f"It could not be told whether an order explains the answers: {reason}."
    explained = verdict is Verdict.OK
    if overlaps is None:
        return "An order of its operations explains all answers." if explained else NO_ORDER
    many = "more than it admits" if model.name == SEMAPHORE else "two"
    together = f"{many} certainly held it at once"
    if overlaps and explained:
        return f"They disagree: {together}, but {KEPT}"
    if overlaps:
        return f"Both agree: {together}. {NO_ORDER}"
    if explained:
        return f"Both agree: no {together}, and an order explains all answers."
    return f"They disagree: no {together}, but no order explains the answers: {reason}."


NO_ORDER = "No order of its operations explains the answers."
KEPT = (
    "the lock kept its promise: whoever was let in came after the other one's lease, or release,"
    " was over."
)


def _key(table: Table, key: int) -> str:
    value = table.symbols.value(key)
    return value if isinstance(value, str) else ""


def _name(table: Table, key: int) -> str:
    return repr(_key(table, key)) if key != NOTHING else "the only object"


def find(history: History) -> Iterator[Finding]:
    """As one of the checks; `judge` asks for the doubts and the definitions too."""
    subject = Whole(history)
    yield from findings(subject, examine(subject, endless))


CHECK = Check(
    code=Code.NOT_LINEARIZABLE,
    meaning="no order of the operations explains the answers",
    explanation="""\
Every operation takes effect at one instant between its invocation and its answer: that is what
makes a lock, or a register, behave as if it were one. If no choice of these instants gives all the
answers that were given, there is no such order, and the object is not linearizable. Each object
(each key) is judged apart. What failed did not happen; what nobody confirmed may have happened at
any time since, or never. Intervals are closed: equal times are concurrent.

The models: mutex (anyone may release it), owner-mutex (only its owner), reentrant, fenced (tokens
grow), reentrant-fenced, semaphore, register, cas-register, set, counter. Which of them a history is
judged by is seen from its operations, or said by `--model`. A lock with a lease may be taken from
its holder once the lease has run out; until then it may not.

Three engines, the fastest that can tell: `sweep` for locks, `zones` for registers whose written
values are all different, both in little more time than it takes to sort; and `search` for
everything, for as long as `--patience` lasts. The evidence is a circle of operations each of which
has to come before the next, or the longest order that is right and the operation that it cannot go
past.

This is not the same as an overlap. A holder that outlives its lease overlaps with the next one,
but the lock kept its promise: linearizable. A lock that lets somebody in while nobody knows any
more who has it need not overlap, but can be impossible to explain. The report puts both side by
side.""",
    find=find,
)
