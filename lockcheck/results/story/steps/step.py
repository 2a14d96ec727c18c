"""One line of a story."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a step is about; report and terminal colour by it."""

    LOCK = "lock"
    DATA = "data"
    FAULT = "fault"
    REFUSED = "refused"  # the storage kept it out
    OVERLAP = "overlap"  # two at once, or a lock that was taken away: not yet damage
    HARM = "harm"


@dataclass(frozen=True, slots=True)
class Step:
    time_ns: int
    who: str
    text: str
    kind: Kind
    weight: int = 0  # how much the story would miss it: the lightest go where there are too many


def weightiest(steps: Sequence[Step], most: int) -> tuple[Step, ...]:
    """Those that the story would miss the most, in the order in which they are."""
    ranked = sorted(range(len(steps)), key=lambda number: -steps[number].weight)
    return tuple(steps[number] for number in sorted(ranked[:most]))
