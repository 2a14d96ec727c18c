"""What the machine did: stalls that clients recorded, and steps of the host's clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lockcheck.history import Effect, Event, FaultSpan, Stall
from lockcheck.history.event import NS_PER_MS

# Clocks are compared every 50 ms: a step is recorded this long after it happened at most.
NOTICED_WITHIN_NS = 200 * NS_PER_MS
# The two clocks are read one after the other, so a step is known to this precision.
STEP_PRECISION_NS = NS_PER_MS


def clipped(stalls: Iterable[Stall], start_ns: int, end_ns: int) -> tuple[Stall, ...]:
    """The parts of the stalls that lie within the interval."""
    parts = (
        Stall(stall.node, max(stall.start_ns, start_ns), min(stall.end_ns, end_ns))
        for stall in stalls
    )
    return tuple(part for part in parts if part.start_ns < part.end_ns)


def total_ns(stalls: Iterable[Stall]) -> int:
    """Their total length; where they overlap, time counts once."""
    total = covered_ns = 0
    for stall in sorted(stalls, key=lambda stall: stall.start_ns):
        total += max(0, stall.end_ns - max(stall.start_ns, covered_ns))
        covered_ns = max(covered_ns, stall.end_ns)
    return total


def host_stepped_ns(
    steps: Iterable[Event], faults: Iterable[FaultSpan], start_ns: int, end_ns: int
) -> int:
    """How far the host's clock jumped forward, which ends a lease early: the largest sum that a
    client recorded. A step on a node whose clock an injected fault set is none of the host's."""
    seen: defaultdict[int | str, int] = defaultdict(int)
    noticed = [s for s in steps if start_ns <= s.time <= end_ns + NOTICED_WITHIN_NS]
    for step in noticed:
        if isinstance(step.value, int | float) and not _ours(step, faults):
            seen[step.node or step.process] += max(0, int(step.value * NS_PER_MS))
    stepped_ns = max(seen.values(), default=0)
    return stepped_ns + STEP_PRECISION_NS if stepped_ns else 0


def _ours(step: Event, faults: Iterable[FaultSpan]) -> bool:
    since_ns = step.time - NOTICED_WITHIN_NS
    skews = (fault for fault in faults if fault.effect is Effect.SKEWS)
    return any(step.node in fault.nodes and fault.touches(since_ns, step.time) for fault in skews)
