"""No order of the operations explains the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

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
from lockcheck.history.table import NEVER, NOTHING, Table
from lockcheck.words import by_node, full_stop, names, operation_words, plain

MOST_STEPS = 12  # of an order or a cycle that are written out
MOST_LOOKED_BACK = 1_000  # operations, for what stands in the way of one


def findings(subject: Subject, examined: Iterable[Examined]) -> Iterator[Finding]:
    """All of them, in time; the first ones with their proof."""
    start = subject.table.start
    wrong = [(each.model, key, answer) for each in examined for key, answer in each.wrong()]
    wrong.sort(key=lambda found: max(start[list(found[2].rows)], default=NEVER))
    rows = [_at_fault(subject, model, answer) for model, _, answer in wrong[:MOST_REPORTED]]
    rows += [answer.rows for *_, answer in wrong[MOST_REPORTED:]]
    blaming = _Blaming(
        subject, [each for each, (model, *_) in zip(rows, wrong, strict=True) if is_lock(model)]
    )
    of_rows = _operations(subject, chain.from_iterable(rows))
    for number, ((model, key, answer), each) in enumerate(zip(wrong, rows, strict=True)):
        proof = _proof(subject, model, answer) if number < MOST_REPORTED else None
        if proof or each:
            operations = tuple(of_rows[row] for row in each)
            yield _finding(blaming, model, key, operations, proof)


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


def _finding(
    blaming: _Blaming,
    model: Model,
    key: int,
    operations: tuple[Operation, ...],
    proof: Proof | None,
) -> Finding:
    subject = blaming.subject
    holds, blame = blaming.of(operations) if is_lock(model) else ((), Blame(Culprit.SERVICE))
    # What is stored has to be right whatever the lock does, and behind every guard.
    of_lock = CHECK.effect(subject.terms, blame)
    return Finding(
        code=Code.NOT_LINEARIZABLE,
        key=key_name(subject.table, key),
        time_ns=max((operation.start_ns for operation in operations), default=0),
        effect=of_lock if is_lock(model) else Verdict.VIOLATION,
        holds=holds,
        operations=operations,
        length_ns=0,
        blame=blame,
        proof=proof,
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


@dataclass(frozen=True)
class _Blaming:
    """Of operations on a lock: that of the two holds that exclude each other, if there are two."""

    subject: Subject
    rows: Sequence[tuple[int, ...]]  # of all such operations

    @cached_property
    def _case(self) -> Case:
        return self.subject.around([np.array(rows) for rows in self.rows if rows])

    @cached_property
    def _granted(self) -> dict[tuple[int | str, str, int], Hold]:
        return {(hold.process, hold.key, hold.start_ns): hold for hold in self._case.holds}

    def of(self, operations: tuple[Operation, ...]) -> tuple[tuple[Hold, ...], Blame]:
        grants = [o for o in operations if _grants(o)]
        found = (self._granted.get((o.process, o.key, o.end_ns or 0)) for o in grants)
        holds = [hold for hold in found if hold is not None]
        if len(holds) != 2 or holds[0].process == holds[1].process:
            return tuple(holds), Blame(Culprit.SERVICE)
        attribution = self._case.attribution
        earlier, later = attribution.in_order(*holds)
        blame = attribution.blame(earlier, later)
        # The engines were lenient with leases and clocks: those do not explain it.
        explained = blame.who in (Culprit.SERVICE, Culprit.CLIENT, Culprit.MACHINE)
        return (earlier, later), blame if explained else Blame(Culprit.SERVICE)


def _grants(operation: Operation) -> bool:
    return operation.f == F.ACQUIRE and operation.ok


def _proof(subject: Subject, model: Model, answer: Answer) -> Proof:
    rows = {*answer.named, *answer.prefix[-MOST_STEPS:]}
    rows |= set() if answer.stuck_on is None else {answer.stuck_on}
    return Proof(model, answer, _operations(subject, rows))


def _operations(subject: Subject, rows: Iterable[int]) -> dict[int, Operation]:
    distinct = sorted({*rows})
    return dict(zip(distinct, subject.operations(distinct), strict=True))


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
    kept="all answers fit one order",
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
