"""A day on which the service was wrong once: it let somebody in while somebody else held it."""

from __future__ import annotations

from tests.production.day import Day
from tests.production.service import Lived, lived
from tests.production.worker import Belief

TRIED = 4  # moments of the day
LONG = 3  # ticks of the log's clock: what is shorter it cannot show


def with_a_mistake(day: Day) -> Lived | None:
    """None: at none of these moments did two clients believe in the same lock because of it."""
    usual = lived(day)
    for part in range(1, TRIED + 1):
        since_ns, until_ns = usual.span_ns
        found = lived(day, since_ns + part * (until_ns - since_ns) // (TRIED + 1))
        if _both_believed(found):
            return found
    return None


def _both_believed(found: Lived) -> bool:
    """And the log has all of it: when they asked, and when they let go."""
    mistake, (since_ns, until_ns) = found.mistake, found.span_ns
    if mistake is None:
        return False
    told = [
        belief
        for belief in found.beliefs
        if belief.key == mistake.key
        and belief.let_go
        and since_ns <= belief.asked_ns
        and belief.until_ns <= until_ns
    ]
    holder = _first(told, mistake.holder, mistake.time_ns)
    intruder = _first(told, mistake.intruder, mistake.time_ns)
    if holder is None or intruder is None:
        return False
    both_ns = min(holder.until_ns, intruder.until_ns) - max(holder.since_ns, intruder.since_ns)
    return holder.asked_ns < mistake.time_ns and both_ns >= LONG * found.day.resolution_ns


def _first(told: list[Belief], client: str, after_ns: int) -> Belief | None:
    """Its belief then, or the next one."""
    own = (belief for belief in told if belief.client == client and belief.until_ns > after_ns)
    return min(own, key=lambda belief: belief.since_ns, default=None)
