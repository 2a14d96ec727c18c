"""A day on which the service was wrong once: it granted a lock that another client held."""

from __future__ import annotations

from tests.production.day import Day
from tests.production.service import Lived, lived
from tests.production.worker import Belief

TRIED = 4  # moments of the day
LONG = 3  # ticks of the log's clock: what is shorter it cannot show


def with_a_mistake(day: Day) -> Lived | None:
    """A day with a mistake; None if at none of these moments two clients held the same lock."""
    usual = lived(day)
    for part in range(1, TRIED + 1):
        since_ns, until_ns = usual.span_ns
        found = lived(day, since_ns + part * (until_ns - since_ns) // (TRIED + 1))
        if _believed_at_once(found):
            return found
    return None


def _believed_at_once(found: Lived) -> bool:
    """One more than there are permits; and the log has all of it: when they asked, and let go."""
    mistake, (since_ns, until_ns) = found.mistake, found.span_ns
    if mistake is None:
        return False
    beliefs = [
        belief
        for belief in found.beliefs
        if belief.key == mistake.key
        and belief.let_go
        and since_ns <= belief.asked_ns
        and belief.until_ns <= until_ns
    ]
    holder = _first(beliefs, mistake.holder, mistake.time_ns)
    intruder = _first(beliefs, mistake.intruder, mistake.time_ns)
    if holder is None or intruder is None or holder.asked_ns >= mistake.time_ns:
        return False
    both, others = (holder, intruder), found.day.permits - 1
    for last in beliefs:
        now_ns = max(last.since_ns, *(each.since_ns for each in both))
        ends_ns = sorted(
            each.until_ns for each in beliefs if each not in both and each.since_ns <= now_ns
        )
        ends_ns = [*ends_ns[len(ends_ns) - others :], *(each.until_ns for each in both)]
        if len(ends_ns) == others + 2 and min(ends_ns) - now_ns >= LONG * found.day.resolution_ns:
            return True
    return False


def _first(beliefs: list[Belief], client: str, after_ns: int) -> Belief | None:
    """Its belief then, or the next one."""
    own = (belief for belief in beliefs if belief.client == client and belief.until_ns > after_ns)
    return min(own, key=lambda belief: belief.since_ns, default=None)
