"""Faults that were proven but affected no operation, so that nothing follows from them.

- A fault at a client has an effect if another client meanwhile requests a lock that the struck one
  holds or is waiting for.
- A fault at a client that still runs (it is cut off, slowed down, or has the wrong time) has one if
  an operation of that client is under way meanwhile.
- A fault at a server, or at a link between servers, has one if any client has a request to the lock
  under way meanwhile; or to the storage, if that is in the lock's own server.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lockcheck.checker.case import Case
from lockcheck.checker.evidence.order import Spans
from lockcheck.history import Effect, Ending, F, FaultSpan, Hold, Operation
from lockcheck.history.event import TRANSACTION

OF_THE_LOCK = frozenset({F.ACQUIRE, F.RELEASE, F.RENEW})
RUNS = (Effect.CUTS, Effect.SKEWS, Effect.SLOWS)


def not_exercised(case: Case) -> tuple[FaultSpan, ...]:
    proven = [fault for fault in case.history.faults if fault.proven_ns is not None]
    if not proven or not case.operations:
        return ()
    effects = _Effects(case)
    return tuple(fault for fault in proven if not effects.had_any(fault))


class _Effects:
    def __init__(self, case: Case) -> None:
        self._end_ns = case.history.end_ns + 1
        in_the_lock = case.terms.guard == TRANSACTION
        self._clients = case.history.clients
        self._asking = _under_way(o for o in case.operations if in_the_lock or o.f in OF_THE_LOCK)
        by_node: defaultdict[str, list[Operation]] = defaultdict(list)
        for operation in case.operations:
            by_node[operation.node].append(operation)
        self._by_node = {node: _under_way(its) for node, its in by_node.items()}
        self._acquires = {key: _under_way(its) for key, its in case.acquires_by_key.items()}
        self._holds = Spans((h.start_ns, self._gone_ns(h), h) for h in case.holds)

    def had_any(self, fault: FaultSpan) -> bool:
        since_ns = fault.worked_from_ns
        until_ns = self._end_ns if fault.healed_ns is None else fault.healed_ns
        servers = set(fault.nodes) - self._clients
        if (servers or not fault.nodes) and any(self._asking.touching(since_ns, until_ns)):
            return True
        struck = self._clients & set(fault.nodes)
        return any(self._had_at_client(node, fault, since_ns, until_ns) for node in struck)

    def _had_at_client(self, node: str, fault: FaultSpan, since_ns: int, until_ns: int) -> bool:
        own = list(self._by_node.get(node, NOTHING).touching(since_ns, until_ns))
        if own and fault.effect in RUNS:
            return True
        # A lock that it requested before may have been granted during the fault.
        wanted = {o.key for o in own if o.f == F.ACQUIRE and o.start_ns <= since_ns}
        held = self._holds.touching(since_ns, until_ns)
        wanted |= {hold.key for hold in held if hold.node == node and hold.start_ns <= since_ns}
        return any(
            other.node != node
            for key in wanted
            for other in self._acquires.get(key, NOTHING).touching(since_ns, until_ns)
        )

    def _gone_ns(self, hold: Hold) -> int | None:
        """The end of a hold; one without an end lasts until its node has another process."""
        if hold.ending is not Ending.LAST_SEEN:
            return hold.end_ns
        later = self._by_node[hold.node].touching(hold.end_ns, self._end_ns)
        others = (o.start_ns for o in later if o.owner != hold.process)
        return min((start_ns for start_ns in others if start_ns > hold.end_ns), default=None)


def _under_way(operations: Iterable[Operation]) -> Spans[Operation]:
    return Spans((o.start_ns, o.answer.time if o.answer else None, o) for o in operations)


NOTHING = Spans[Operation](())
