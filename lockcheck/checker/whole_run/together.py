"""How many clients held, shared or entered a lock at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from lockcheck.history import Hold


@dataclass(frozen=True, slots=True)
class Together:
    """Each is the maximum for any one lock, counted from certain holds: a lower bound."""

    held: int  # at once, rightly or not
    shared: int  # at once, of holds that are shared
    entered: int  # levels of one client


def together(by_key: dict[str, list[Hold]]) -> Together:
    groups = by_key.values()
    return Together(
        held=max(map(_at_once, groups), default=0),
        shared=max(
            (_at_once(hold for hold in group if hold.shared) for group in groups), default=0
        ),
        entered=max((hold.entered for group in groups for hold in group), default=0),
    )


def _at_once(holds: Iterable[Hold]) -> int:
    """The most holds that have an instant in common; they are in the order of their starts. A hold
    that starts at the very end of another has none in common with it."""
    most, ends = 0, list[int]()
    for hold in holds:
        while ends and ends[0] <= hold.start_ns:
            heappop(ends)
        if hold.end_ns > hold.start_ns:
            heappush(ends, hold.end_ns)
        most = max(most, len(ends))
    return most
