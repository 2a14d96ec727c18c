"""The machine's own stalls. A paused client's clock notices its pause too: that is the fault."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockcheck.history import FaultSpan, History, Stall
from lockcheck.history.event import NS_PER_MS

# A ticker notices a stall from its last tick on, so a rest of this length is no stall of its own.
SHORTEST_NS = 50 * NS_PER_MS


def own_stalls(history: History, stalls: Iterable[Stall]) -> tuple[Stall, ...]:
    """What remains of them where no fault that kept the same node from running covers them."""
    by_node: dict[str, list[FaultSpan]] = {}
    for fault in sorted(history.faults, key=lambda fault: fault.start_ns):
        for node in fault.nodes if fault.may_have_stopped_nodes else ():
            by_node.setdefault(node, []).append(fault)
    return tuple(
        part for stall in stalls for part in _uncovered(stall, by_node.get(stall.node, ()))
    )


def _uncovered(stall: Stall, faults: Sequence[FaultSpan]) -> list[Stall]:
    covering = [fault for fault in faults if fault.touches(stall.start_ns, stall.end_ns)]
    if not covering:
        return [stall]
    parts, since_ns = [], stall.start_ns
    for fault in covering:
        parts.append(Stall(stall.node, since_ns, fault.start_ns))
        healed_ns = stall.end_ns if fault.healed_ns is None else fault.healed_ns
        since_ns = max(since_ns, healed_ns)
    parts.append(Stall(stall.node, since_ns, stall.end_ns))
    return [part for part in parts if part.end_ns - part.start_ns >= SHORTEST_NS]
