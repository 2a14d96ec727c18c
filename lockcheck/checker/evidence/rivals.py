"""Which holds exclude each other, and which of them were certainly granted later than a hold."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from lockcheck.checker.evidence.order import certainly_earlier, concurrent
from lockcheck.history import F, History, Hold, Terms
from lockcheck.history.clocks import slack_ns
from lockcheck.history.event import NS_PER_MS


def exclude(terms: Terms, one: Hold, other: Hold) -> bool:
    """Whether the two may not hold it at once: not both shared, and only one permit."""
    return terms.permits <= 1 and not (one.shared and other.shared)


class Reentries:
    """When the holders of a reentrant lock were granted it again."""

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
    """Finds the holds of one key that were certainly granted later than a given one."""

    def __init__(self, history: History, holds: list[Hold]) -> None:
        """`holds` by their starts, of each client one at a time."""
        self._terms = history.terms
        self._queues = self._terms.fair or self._terms.session or bool(history.queued)
        self._all = holds
        self._alone = [hold for hold in holds if not hold.shared]

    def after(self, hold: Hold, until_ns: int) -> Iterator[Hold]:
        """The rivals whose grant was answered before `until_ns`, the earliest first."""
        others = self._alone if hold.shared else self._all
        position = bisect_right(others, hold.start_ns, key=lambda other: other.start_ns)
        while position < len(others) and others[position].start_ns < until_ns:
            other = others[position]
            position += 1
            if other.process != hold.process and self._is_later(hold, other):
                yield other

    def _is_later(self, hold: Hold, other: Hold) -> bool:
        """By time, or by the tokens. Otherwise, in a queue, by the order of the answers, unless the
        other's lease was over before this answer came: then it may have held the lock before."""
        if certainly_earlier(hold, other):
            return True
        if not self._queues or not concurrent(hold, other):
            return False
        if hold.token is not None and other.token is not None:
            return False
        lease_ns = (other.acquire.invoke.ttl_ms or self._terms.ttl_ms or 0) * NS_PER_MS
        asked_ns, request_ns = other.acquire.start_ns, other.start_ns - other.acquire.start_ns
        return hold.start_ns < asked_ns + lease_ns - slack_ns(lease_ns, request_ns, self._terms)
