"""When a node did not run, or may not have run; and when it may have been unreachable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lockcheck.checker.evidence.stalls import clipped
from lockcheck.history import Effect, FaultSpan, History, Stall

ALL_NODES = ""


class Outages:
    """Times in which faults and stalls may have kept nodes from running, or from being heard."""

    def __init__(self, history: History) -> None:
        self._stopped: defaultdict[str, list[Stall]] = defaultdict(list)
        self._disturbed: defaultdict[str, list[Stall]] = defaultdict(list)
        clients = history.clients
        for fault in history.faults:
            healed_ns = history.end_ns if fault.healed_ns is None else fault.healed_ns
            for node in _disturbed(fault, clients):
                self._disturbed[node].append(Stall(node, fault.start_ns, healed_ns))
            for node in fault.nodes if fault.may_have_stopped_nodes else ():
                self._stopped[node].append(Stall(node, fault.start_ns, healed_ns))
        for stall in history.stalls:
            self._stopped[stall.node].append(stall)

    def during(self, nodes: Iterable[str], start_ns: int, end_ns: int) -> tuple[Stall, ...]:
        """The times in which one of the nodes did not run."""
        stopped = (stall for node in nodes for stall in self._stopped.get(node, ()))
        return clipped(stopped, start_ns, end_ns)

    def out_of_touch(self, nodes: set[str], start_ns: int, end_ns: int) -> tuple[Stall, ...]:
        """The times in which one of the nodes did not run, or its messages may have been lost."""
        disturbed = (one for node in (*nodes, ALL_NODES) for one in self._disturbed.get(node, ()))
        return (*self.during(nodes, start_ns, end_ns), *clipped(disturbed, start_ns, end_ns))


def _disturbed(fault: FaultSpan, clients: frozenset[str]) -> tuple[str, ...]:
    """The nodes whose messages a fault may delay. A cut has two sides, of which the history may
    name only one, and a slow server delays what it sends to any node."""
    slow_server = fault.effect is Effect.SLOWS and not clients.issuperset(fault.nodes)
    if fault.effect is Effect.CUTS or slow_server or not fault.nodes:
        return (ALL_NODES,)
    return fault.nodes
