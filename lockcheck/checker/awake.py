"""When a node certainly did not run, or may not have: under a fault of ours, or stalled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lockcheck.checker.stalls import clipped
from lockcheck.history import History, Stall


class StoodStill:
    def __init__(self, history: History) -> None:
        self._still: defaultdict[str, list[Stall]] = defaultdict(list)
        for fault in history.faults:
            healed_ns = history.end_ns if fault.healed_ns is None else fault.healed_ns
            self._still[fault.node].append(Stall(fault.node, fault.start_ns, healed_ns))
        for stall in history.stalls:
            self._still[stall.node].append(stall)

    def during(self, nodes: Iterable[str], start_ns: int, end_ns: int) -> tuple[Stall, ...]:
        still = (stall for node in nodes for stall in self._still.get(node, ()))
        return clipped(still, start_ns, end_ns)
