"""Who asks for what it had given up, of a lock that it may enter again.

In a log of somebody's day a client may have crashed, and come back under its name. Who enters again
leaves as often, so what is left is what was entered last. Once nothing of what it had entered is
left later, it had given that up by the time at which it asks again. A release after one that was
not answered may be that one once more: it need not be of another level.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from lockcheck.history.event import F
from lockcheck.history.model import Operation


def given_up(operations: Iterable[Operation]) -> frozenset[int]:
    """The ids of the invocations by which it asks. `operations` are in the order of theirs."""
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
    """What was entered, or may have been, and by what it was left."""
    inside: list[Operation] = []
    before: Operation | None = None
    for operation in own:
        repeated = before is not None and before.f == F.RELEASE and before.unknown
        before = operation
        if operation.f != F.RELEASE:
            inside += () if operation.failed else (operation,)
        elif inside and not repeated:
            yield inside.pop(), operation
