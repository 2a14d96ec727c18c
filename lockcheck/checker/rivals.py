"""Which holds exclude each other, and which of them were certainly granted later than a hold."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from lockcheck.checker.order import granted_before
from lockcheck.history import F, History, Hold, Terms


def exclude(terms: Terms, one: Hold, other: Hold) -> bool:
    """Not both may have it at once: they do not share it, and there is one permit only."""
    return terms.permits <= 1 and not (one.shared and other.shared)


class Reentries:
    """When the holders of a reentrant lock were granted it once more: it was theirs again then."""

    def __init__(self, history: History) -> None:
        self._granted_ns: defaultdict[tuple[int | str, str], list[int]] = defaultdict(list)
        if history.terms.reentrant:
            for operation in history.operations:
                if operation.f == F.ACQUIRE and operation.ok and operation.end_ns is not None:
                    self._granted_ns[operation.process, operation.key].append(operation.end_ns)

    def between(self, hold: Hold, after_ns: int, before_ns: int) -> bool:
        granted_ns = self._granted_ns.get((hold.process, hold.key), [])
        position = bisect_right(granted_ns, after_ns)
        return position < len(granted_ns) and granted_ns[position] < before_ns


class Rivals:
    def __init__(self, holds: list[Hold]) -> None:
        """`holds` of one key, of which one client can have only one at once, by their starts."""
        self._all = holds
        self._alone = [hold for hold in holds if not hold.shared]

    def after(self, hold: Hold, until_ns: int) -> Iterator[Hold]:
        """Those whose grant was answered before `until_ns`, the first one first."""
        others = self._alone if hold.shared else self._all
        position = bisect_right(others, hold.start_ns, key=lambda other: other.start_ns)
        while position < len(others) and others[position].start_ns < until_ns:
            other = others[position]
            position += 1
            if other.process != hold.process and granted_before(hold, other):
                yield other
