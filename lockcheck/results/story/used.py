"""What a run saw: faults, readers together, permits taken, levels entered, writes lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lockcheck.checker.finding import Counts, Judgement
from lockcheck.checker.words import amount, listed, plain
from lockcheck.history import History, Terms

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


def injected(history: History, judgement: Judgement) -> str:
    """What was done to it, and took: `1 pause and kill (2 times)`; empty: nothing."""
    proven = Counter(f.name for f in history.faults if f.proven_ns is not None)
    if proven.total() != judgement.counts.faults:  # the history is only a part
        return amount(judgement.counts.faults, "fault") if judgement.counts.faults else ""
    return listed(_often(plain(name), number) for name, number in proven.items())


def _often(name: str, number: int) -> str:
    return f"{name} ({number:,} times)" if number > 1 else f"1 {name}"


def updates_lost(counts: Counts) -> str:
    """Published results are told like this: 14 of 120 acknowledged writes lost (12 %)."""
    lost, acknowledged = counts.updates_lost, counts.updates_acknowledged
    if not acknowledged:
        return ""
    if not lost:
        return "no acknowledged write lost"
    share = 100 * lost / acknowledged
    percent = f"{share:.0f}" if share >= 1 else f"{share:.1g}"
    return f"{lost:,} of {amount(acknowledged, 'acknowledged write')} lost ({percent} %)"
