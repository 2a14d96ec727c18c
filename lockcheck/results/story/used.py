"""What a run saw of what its lock is for: readers together, permits taken, levels entered."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.finding import Counts
from lockcheck.history import Terms
from lockcheck.results.story.words import amount

NESTED = 2  # levels; on one there is everybody who holds a lock


def used(terms: Terms, counts: Counts) -> str:
    """Of a lock that one client holds at a time there is nothing to say."""
    return "; ".join(_used(terms, counts))


def _used(terms: Terms, counts: Counts) -> Iterator[str]:
    if counts.shared_together:
        yield f"up to {amount(counts.shared_together, 'client')} shared it at once"
    if terms.permits > 1 and terms.excludes and counts.held_together:
        yield f"up to {counts.held_together} of {terms.permits} permits were held at once"
    if counts.entered_deepest >= NESTED:
        yield f"it was entered on up to {counts.entered_deepest} levels"


def updates_lost(counts: Counts) -> str:
    """Published results are told like this: 14 of 120 acknowledged updates lost (12 %)."""
    lost, acknowledged = counts.updates_lost, counts.updates_acknowledged
    if not acknowledged:
        return ""
    if not lost:
        return "no acknowledged update lost"
    share = 100 * lost / acknowledged
    percent = f"{share:.0f}" if share >= 1 else f"{share:.1g}"
    return f"{lost:,} of {amount(acknowledged, 'acknowledged update')} lost ({percent} %)"
