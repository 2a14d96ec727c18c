"""An operation in words, for the sentences of an explanation."""

from __future__ import annotations

from lockcheck.history import F, Operation
from lockcheck.history.event import NS_PER_MS


def told(operation: Operation) -> str:
    """Who did what, and when: "process 3 read 7 (12.0 to 13.5 ms)"."""
    return f"process {operation.process} {_did(operation)} ({when(operation)})"


def when(operation: Operation) -> str:
    start, end = operation.start_ns / NS_PER_MS, operation.end_ns
    if end is None:
        return f"from {start:.3f} ms, never answered"
    return f"{start:.3f} to {end / NS_PER_MS:.3f} ms"


def _did(operation: Operation) -> str:
    answer = operation.answer
    said = answer.value if answer else None
    if operation.f == F.READ:
        return f"read {said!r}"
    if operation.f == F.ACQUIRE and answer is not None and answer.token is not None:
        return f"acquire with token {answer.token}"
    asked = operation.invoke.value
    return operation.f if asked is None else f"{operation.f} {asked!r}"
