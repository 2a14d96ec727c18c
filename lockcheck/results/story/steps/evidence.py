"""The operations in evidence, one by one: for findings that no hold explains."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.finding import Verdict
from lockcheck.history import F, Hold, Operation
from lockcheck.results.story.incidents import (
    Incident,
    evidence_of,
    identity,
)
from lockcheck.results.story.steps.cast import Cast
from lockcheck.results.story.steps.step import Kind, Step
from lockcheck.results.story.wording.codes import words_of
from lockcheck.words import LOCKING, label, lock_name, plain, span

WEIGHT, CONCLUSION = 94, 99
OPERATIONS_SHOWN = 10
ATTEMPTS_SHOWN = 4


def evidence_steps(incident: Incident, cast: Cast) -> Iterator[Step]:
    by_grant = {identity(hold.acquire) for hold in cast.shown}
    known = {identity(o) for hold in cast.shown for o in _with(hold)}
    known |= cast.stale | frozenset(cast.losses)
    every = evidence_of(incident)
    if any(words_of(same[0]).shows_requests for same in incident.by_code.values()):
        yield from (_asked(o) for o in every if identity(o) in by_grant)
    yield from _in_turn([o for o in every if identity(o) not in known | by_grant])
    for finding in incident.with_evidence:
        words = words_of(finding)
        who, text = words.last(finding)
        if finding is incident.main or not words.follows_from_others:
            kind = Kind.HARM if finding.effect is Verdict.VIOLATION else Kind.OVERLAP
            yield Step(finding.time_ns, who, text, kind, CONCLUSION)


def _with(hold: Hold) -> Iterator[Operation]:
    yield from hold.renewals
    if hold.release is not None:
        yield hold.release


def _asked(acquire: Operation) -> Step:
    who, text = plain(acquire.node), f"asked for {lock_name(acquire.key)}"
    return Step(acquire.start_ns, who, text, Kind.LOCK, WEIGHT)


def _in_turn(operations: list[Operation]) -> Iterator[Step]:
    """Of many those at both ends: a circle closes where it began. Attempts are all alike."""
    attempts = all(o.f == F.ACQUIRE and not o.ok for o in operations)
    each = (ATTEMPTS_SHOWN if attempts else OPERATIONS_SHOWN) // 2
    left_out = operations[each:-each] if len(operations) > 2 * each + 1 else []
    skipped = {identity(operation) for operation in left_out}
    for operation in operations:
        if identity(operation) not in skipped:
            kind = Kind.LOCK if operation.f in LOCKING else Kind.DATA
            who, text = plain(operation.node), _call_and_answer(operation)
            yield Step(operation.start_ns, who, text, kind, WEIGHT)
    if left_out:
        what = "attempts" if attempts else "operations"
        nodes = {operation.node for operation in left_out}
        who = plain(left_out[0].node) if len(nodes) == 1 else "others"
        text = f"… and {len(left_out):,} more {what} in evidence"
        yield Step(left_out[0].start_ns, who, text, Kind.DATA, WEIGHT)


def _call_and_answer(operation: Operation) -> str:
    """The call, and what came of it: `read x: 1 (answered 0.0031 s later)`."""
    answer = operation.answer
    if answer is None:
        return label(operation)
    why = f": {plain(answer.error, 90)}" if answer.error else ""
    return f"{label(operation)}{why} (answered {span(answer.time - operation.start_ns)} later)"
