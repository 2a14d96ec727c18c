"""Finds clients of a reentrant lock that ask again for what they had given up.

In a log of production a client may have crashed, and come back under the same name. A client leaves
as often as it enters, and what it leaves is what it entered last. If none of its open levels is
left later, it had given them up by the time at which it asks again. A release after one that was
not answered may be a repetition: it need not be of another level.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from lockcheck.history.event import F
from lockcheck.history.model import Operation


def given_up(operations: Iterable[Operation]) -> frozenset[int]:
    """The ids of these invocations. `operations` are in the order of their invocations."""
    clients: defaultdict[tuple[int | str, str], list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.f in (F.ACQUIRE, F.RELEASE):
            clients[operation.process, operation.key].append(operation)
    return frozenset(id(ask.invoke) for own in clients.values() for ask in _anew(own))


def _anew(own: list[Operation]) -> Iterator[Operation]:
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
    """Each level that was entered, or may have been, and the release that left it."""
    inside: list[Operation] = []
    before: Operation | None = None
    for operation in own:
        repeated = before is not None and before.f == F.RELEASE and before.unknown
        before = operation
        if operation.f != F.RELEASE:
            inside += () if operation.failed else (operation,)
        elif inside and not repeated:
            yield inside.pop(), operation
