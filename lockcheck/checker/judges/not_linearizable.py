"""No order of the operations explains the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import CLEAR
from lockcheck.checker.columns.subject import EventSubject, Subject
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.examined import MOST_REPORTED, Examined, examine, key_name, reason_of
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Proof, Verdict
from lockcheck.checker.linearizability import Answer, Model, endless
from lockcheck.checker.logs.excuses import Excuse
from lockcheck.checker.modelling import is_lock, misfit, nested_instead
from lockcheck.checker.wording import Words
from lockcheck.history import F, Hold, Operation
from lockcheck.history.model import name_of
from lockcheck.history.table import NOTHING, Table
from lockcheck.words import by_node, full_stop, names, operation_words, plain

MOST_STEPS = 12  # of an order or a cycle that are written out
MOST_LOOKED_BACK = 1_000  # operations, for what stands in the way of one


def findings(subject: Subject, examined: Iterable[Examined]) -> Iterator[Finding]:
    for each in examined:
        for key, answer in islice(each.wrong(), MOST_REPORTED):
            yield _finding(subject, each, key, answer)


def doubts(subject: Subject, examined: Iterable[Examined]) -> Iterator[Doubt]:
    table, terms = subject.table, subject.terms
    wrong = misfit(table, terms)
    if wrong:
        yield Doubt(DoubtCode.MODEL_MISFIT, reason=wrong)
    for each in examined:
        model = each.model.name
        for key, answer in list(each.undecided())[:MOST_REPORTED]:
            why = reason_of(subject, answer) or "patience ran out"
            yield Doubt(DoubtCode.UNDECIDED, _name(table, key), model=model, reason=why)
        instead = nested_instead(each.model, terms)
        if instead is not None:
            for key in sorted(each.nested)[:MOST_REPORTED]:
                name = _name(table, key)
                yield Doubt(DoubtCode.MAYBE_REENTRANT, name, model=model, instead=instead.name)
        for key in sorted(each.excused)[:MOST_REPORTED]:
            for excuse in each.excused[key]:
                yield _doubt(table, key, excuse)


def _doubt(table: Table, key: int, excuse: Excuse) -> Doubt:
    clients = (table.symbols.value(client) for client in excuse.clients)
    return Doubt(excuse.code, _name(table, key), names(map(name_of, clients)))


def _finding(subject: Subject, examined: Examined, key: int, answer: Answer) -> Finding:
    rows = _at_fault(subject, examined.model, answer)
    operations = subject.operations(rows)
    holds, blame = _blame(subject, examined.model, rows, operations)
    # What is stored has to be right whatever the lock does, and behind every guard.
    of_lock = CHECK.effect(subject.terms, blame)
    return Finding(
        code=Code.NOT_LINEARIZABLE,
        key=key_name(subject.table, key),
        time_ns=max((operation.start_ns for operation in operations), default=0),
        effect=of_lock if is_lock(examined.model) else Verdict.VIOLATION,
        holds=holds,
        operations=tuple(operations),
        length_ns=0,
        blame=blame,
        proof=_proof(subject, examined.model, answer),
    )


def _at_fault(subject: Subject, model: Model, answer: Answer) -> tuple[int, ...]:
    """A search says what it cannot go past. Of a grant of a lock that takes what stands in its way,
    too: the last one before it that was not given back."""
    if answer.stuck_on is None or not is_lock(model):
        return answer.rows
    rows = answer.prefix[-MOST_LOOKED_BACK:]
    [stuck, *before] = subject.operations((answer.stuck_on, *rows))
    given_back: set[object] = {stuck.process}
    for row, operation in zip(reversed(rows), reversed(before), strict=True):
        if operation.f == F.RELEASE:
            given_back.add(operation.process)
        elif _grants(stuck) and _grants(operation) and operation.process not in given_back:
            return (row, answer.stuck_on)
    return answer.rows


def _blame(
    subject: Subject, model: Model, rows: tuple[int, ...], operations: list[Operation]
) -> tuple[tuple[Hold, ...], Blame]:
    """Of a lock: that of the two holds that exclude each other, where there are two."""
    service = Blame(Culprit.SERVICE)
    if not is_lock(model):
        return (), service
    case = subject.around([np.array(rows)])
    granted = {(hold.process, hold.key, hold.start_ns): hold for hold in case.holds}
    found = (granted.get((o.process, o.key, o.end_ns or 0)) for o in operations if _grants(o))
    holds = [hold for hold in found if hold is not None]
    if len(holds) != 2 or holds[0].process == holds[1].process:
        return tuple(holds), service
    earlier, later = case.attribution.in_order(*holds)
    blame = case.attribution.blame(earlier, later)
    # The engines were lenient with leases and clocks: those do not explain it.
    explained = blame.who in (Culprit.SERVICE, Culprit.CLIENT, Culprit.MACHINE)
    return (earlier, later), blame if explained else service


def _grants(operation: Operation) -> bool:
    return operation.f == F.ACQUIRE and operation.ok


def _proof(subject: Subject, model: Model, answer: Answer) -> Proof:
    rows = {*answer.named, *answer.prefix[-MOST_STEPS:]}
    rows |= set() if answer.stuck_on is None else {answer.stuck_on}
    return Proof(model, answer, dict(zip(rows, subject.operations(rows), strict=True)))


def _name(table: Table, key: int) -> str | None:
    return key_name(table, key) if key != NOTHING else None


def find(case: Case) -> Iterator[Finding]:
    """As one of the checks; `judge` asks for the doubts and the definitions too."""
    subject = EventSubject(case)
    yield from findings(subject, examine(subject, endless))


def _title(finding: Finding) -> str:
    on = f" on {plain(finding.key)}" if finding.key else ""
    return f"No order of the operations{on} explains the answers"


def _note(finding: Finding) -> Iterator[str]:
    if (proof := finding.proof) is not None:
        named = (proof.operations[row] for row in proof.answer.named)
        yield full_stop(by_node(proof.answer.reason, named))


def _in_full(finding: Finding) -> Iterator[str]:
    if (proof := finding.proof) is None:
        return
    answer, of = proof.answer, proof.operations
    if not (answer.cycle or answer.prefix):
        return
    yield f"Judged by the model {proof.model.name}: {proof.model.meaning}."
    if answer.cycle:
        for link in answer.cycle[:MOST_STEPS]:
            before, after = of[link.before], of[link.after]
            why = by_node(link.reason, (before, after))
            yield f"{operation_words(before)} has to come before {operation_words(after)}: {why}."
        yield "That is a cycle, so no order can be right."
    elif answer.prefix:
        yield f"The longest order that is right has {len(answer.prefix)} operations; it ends with:"
        yield from (operation_words(of[row]) for row in answer.prefix[-MOST_STEPS:])
        if answer.stuck_on is not None:
            yield f"No order can go on past {operation_words(of[answer.stuck_on])}."


WORDS = Words(
    one="answer that fits no order",
    many="answers that fit no order",
    precedence=0,
    title=_title,
    last=lambda _: ("lockcheck", "no order of the operations explains this"),
    did=lambda _: (
        "its answers fit no order in which each operation takes effect at one moment between "
        "its invocation and its answer"
    ),
    cure=(
        "Every grant and every release must be decided in one order that a majority agrees on "
        "before it is answered; a server that was cut off, restarted or promoted must not "
        "answer from memory."
    ),
    object_cure=(
        "Every read and every write must go through one order that a majority agrees on before it "
        "is answered: no reads from replicas or caches that may lag, no write that is acknowledged "
        "before it is on a majority, no update without comparing what it was based on."
    ),
    note=_note,
    in_full=_in_full,
    follows_from_others=True,
)
CHECK = Check(
    code=Code.NOT_LINEARIZABLE,
    meaning="no order of the operations explains the answers",
    explanation="""\
Every operation takes effect at one instant between its invocation and its answer: that is what
makes a lock, or a register, behave as if it were one. If no choice of these instants gives all the
answers that were given, there is no such order, and the object is not linearizable. Each object
(each key) is judged apart. What failed did not happen; what was never confirmed may have happened
at any time since, or never. Intervals are closed: equal times are concurrent. But a client's own
operations come one after the other, also where one begins when the last one ended; of two that took
no time, only a history of events says which came first. For locks with leases, times alone count.

The models: mutex (anyone may release it), owner-mutex (only its owner), reentrant, fenced (tokens
grow), reentrant-fenced, shared (readers together, or one writer), semaphore (anyone may release),
owner-semaphore, register, cas-register, set, counter. Which of them a history is judged by is seen
from its operations, or given by `--model`. A lock with a lease may be taken from its holder once
the lease has run out; until then it may not.

Three engines, the fastest that can tell: `sweep` for locks, `zones` for registers whose written
values are all different, both in little more time than it takes to sort; and `search` for
everything, for as long as `--patience` lasts. The evidence is a cycle of operations each of which
has to come before the next, or the longest order that is right and the operation that it cannot go
past.

This is not the same as an overlap. A holder that outlives its lease overlaps with the next one,
but the lock kept its promise: linearizable. A lock that lets a client in although it is not
known any more which one has it need not overlap, but can be impossible to explain. The report
puts both side by side.""",
    find=find,
    words=WORDS,
    screen=CLEAR,
    by_storage=True,
)
