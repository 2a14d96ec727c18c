"""The operations in evidence, told one by one: for what no hold can tell."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.finding import Code
from lockcheck.history import F, Hold, Operation
from lockcheck.results.story.anomalies import conclusion
from lockcheck.results.story.cast import Cast
from lockcheck.results.story.incidents import (
    Incident,
    evidence_of,
    operation_identity,
    told_by_evidence,
)
from lockcheck.results.story.objects import LOCKING
from lockcheck.results.story.step import Kind, Step
from lockcheck.results.story.words import lock_name, plain, span

WEIGHT, CONCLUSION = 94, 99
OPERATIONS_TOLD = 10
ATTEMPTS_TOLD = 4


def evidence_steps(incident: Incident, cast: Cast) -> Iterator[Step]:
    by_grant = {operation_identity(hold.acquire) for hold in cast.told}
    known = {operation_identity(o) for hold in cast.told for o in _told_with(hold)}
    known |= cast.stale | frozenset(cast.losses)
    every = evidence_of(incident)
    if incident.of(Code.UNFAIR):
        yield from (_asked(o) for o in every if operation_identity(o) in by_grant)
    yield from _in_turn([o for o in every if operation_identity(o) not in known | by_grant])
    for finding in told_by_evidence(incident):
        who, text = conclusion(finding)
        yield Step(finding.time_ns, who, text, Kind.HARM, CONCLUSION)


def _told_with(hold: Hold) -> Iterator[Operation]:
    yield from hold.renewals
    if hold.release is not None:
        yield hold.release


def _asked(acquire: Operation) -> Step:
    who, text = plain(acquire.node), f"asked for {lock_name(acquire.key)}"
    return Step(acquire.start_ns, who, text, Kind.LOCK, WEIGHT)


def _in_turn(operations: list[Operation]) -> Iterator[Step]:
    """Of many those at both ends: a circle closes where it began. Attempts are all alike."""
    attempts = all(o.f == F.ACQUIRE and not o.ok for o in operations)
    each = (ATTEMPTS_TOLD if attempts else OPERATIONS_TOLD) // 2
    left_out = operations[each:-each] if len(operations) > 2 * each + 1 else []
    skipped = {operation_identity(operation) for operation in left_out}
    for operation in operations:
        if operation_identity(operation) not in skipped:
            kind = Kind.LOCK if operation.f in LOCKING else Kind.DATA
            yield Step(operation.start_ns, plain(operation.node), told(operation), kind, WEIGHT)
    if left_out:
        what = "attempts" if attempts else "operations"
        nodes = {operation.node for operation in left_out}
        who = plain(left_out[0].node) if len(nodes) == 1 else "others"
        text = f"… and {len(left_out):,} more {what} in evidence"
        yield Step(left_out[0].start_ns, who, text, Kind.DATA, WEIGHT)


def told(operation: Operation) -> str:
    """The call, and what came of it: `read x: 1 (answered 3.1 ms later)`."""
    answer = operation.answer
    if answer is None:
        return f"{call(operation)}: no answer came"
    why = f": {plain(answer.error, 90)}" if answer.error else ""
    later = f" (answered {span(answer.time - operation.start_ns)} later)"
    return f"{call(operation)}: {_outcome(operation)}{why}{later}"


def label(operation: Operation) -> str:
    outcome = "no answer" if operation.answer is None else _outcome(operation)
    return f"{call(operation)}: {outcome}"


def call(operation: Operation) -> str:
    """In few words: `write 2 to x`, `cas 1 to 2 on x`, `acquire k1`."""
    f, key, value = plain(operation.f, 24), plain(operation.key), operation.invoke.value
    token = operation.invoke.token
    shown = "" if token is None else f" with token {token}"
    if operation.f in LOCKING or operation.f == F.READ or value is None:
        return f"{f}{f' {key}' if key else ''}{shown}"
    where = f" {'to' if operation.f == F.WRITE else 'on'} {key}" if key else ""
    return f"{f} {_value(operation, value)}{where}{shown}"


def _value(operation: Operation, value: object) -> str:
    if operation.f == F.CAS and isinstance(value, list | tuple) and len(value) == 2:
        return f"{plain(value[0], 30)} to {plain(value[1], 30)}"
    return plain(value)


def _outcome(operation: Operation) -> str:
    answer, granting = operation.answer, operation.f == F.ACQUIRE
    if operation.failed:
        return "not granted" if granting else "did not happen"
    if operation.unknown or answer is None:
        return "nobody knows whether it happened"
    if granting:
        return "granted" if answer.token is None else f"granted, token {answer.token}"
    if operation.f == F.READ:
        return "nothing" if answer.value is None else plain(answer.value)
    changed = answer.value is not None and answer.value != operation.invoke.value
    return f"done, {plain(answer.value)}" if changed and operation.f not in LOCKING else "done"
