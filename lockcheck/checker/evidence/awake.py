"""When a node did not run, or may not have; and when it may have been out of touch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lockcheck.checker.evidence.stalls import clipped
from lockcheck.history import Effect, FaultSpan, History, Stall

UNLIMITED_PERMITS = ""


class StoodStill:
    def __init__(self, history: History) -> None:
        self._still: defaultdict[str, list[Stall]] = defaultdict(list)
        self._disturbed: defaultdict[str, list[Stall]] = defaultdict(list)
        clients = history.clients
        for fault in history.faults:
            healed_ns = history.end_ns if fault.healed_ns is None else fault.healed_ns
            for node in _disturbed(fault, clients):
                self._disturbed[node].append(Stall(node, fault.start_ns, healed_ns))
            for node in fault.nodes if fault.may_have_stopped_nodes else ():
                self._still[node].append(Stall(node, fault.start_ns, healed_ns))
        for stall in history.stalls:
            self._still[stall.node].append(stall)

    def during(self, nodes: Iterable[str], start_ns: int, end_ns: int) -> tuple[Stall, ...]:
        """When one of them did not run. Whoever was cut off, or had the wrong time, did run."""
        still = (stall for node in nodes for stall in self._still.get(node, ()))
        return clipped(still, start_ns, end_ns)

    def out_of_touch(self, nodes: set[str], start_ns: int, end_ns: int) -> tuple[Stall, ...]:
        """When one of them did not run, or what it sent or was sent may not have arrived."""
        disturbed = (
            one for node in (*nodes, UNLIMITED_PERMITS) for one in self._disturbed.get(node, ())
        )
        return (*self.during(nodes, start_ns, end_ns), *clipped(disturbed, start_ns, end_ns))


def _disturbed(fault: FaultSpan, clients: frozenset[str]) -> tuple[str, ...]:
    """A cut has two sides, and only one of them may be told. What a slow server sends is late for
    whoever it is sent to."""
    slow_server = fault.effect is Effect.SLOWS and not clients.issuperset(fault.nodes)
    if fault.effect is Effect.CUTS or slow_server or not fault.nodes:
        return (UNLIMITED_PERMITS,)
    return fault.nodes
