"""How much a lock was made use of that more than one may hold, or that is entered again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from lockcheck.history import Hold


@dataclass(frozen=True, slots=True)
class Together:
    """Each is the most that was seen of any one lock; of certain holds, so it was no less."""

    held: int  # at once, rightly or not
    shared: int  # at once by those who share
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
    """Of holds in the order of their starts the most with an instant in common. Equal times are
    concurrent: an end and a start at the same nanosecond have none."""
    most, ends = 0, list[int]()
    for hold in holds:
        while ends and ends[0] <= hold.start_ns:
            heappop(ends)
        if hold.end_ns > hold.start_ns:
            heappush(ends, hold.end_ns)
        most = max(most, len(ends))
    return most
