"""Finds clients of a reentrant lock that start over: their earlier grants were given up.

In a production log a client may have crashed and come back under the same name. A client releases
as often as it acquires, the last level first. If none of its open levels is released later, it had
given them up when it asks again. A release that follows an unanswered one may be its repetition,
and then it releases no other level.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from lockcheck.history.event import F
from lockcheck.history.model import Operation


def given_up(operations: Iterable[Operation]) -> frozenset[int]:
    """The ids of invocations that start over; `operations` are in invocation order."""
    clients: defaultdict[tuple[int | str, str], list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.f in (F.ACQUIRE, F.RELEASE):
            clients[operation.process, operation.key].append(operation)
    return frozenset(id(ask.invoke) for own in clients.values() for ask in _starting_over(own))


def _starting_over(own: list[Operation]) -> Iterator[Operation]:
    """The acquires of one client that come when none of its open levels is released any more."""
    left = {id(entered) for entered, _ in _levels(own)}
    inside: list[Operation] = []
    for operation in own:
        if operation.f == F.RELEASE:
            del inside[-1:]
            continue
        if inside and not any(id(entered) in left for entered in inside):
            yield operation
            inside.clear()
        if not operation.failed:
            inside.append(operation)


def _levels(own: list[Operation]) -> Iterator[tuple[Operation, Operation]]:
    """Each level that was entered, or may have been, with the release that left it."""
    inside: list[Operation] = []
    before: Operation | None = None
    for operation in own:
        repeated = before is not None and before.f == F.RELEASE and before.unknown
        before = operation
        if operation.f != F.RELEASE:
            inside += () if operation.failed else (operation,)
        elif inside and not repeated:
            yield inside.pop(), operation
