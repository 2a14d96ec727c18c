"""The quiet time after the last fault: everything is healed, so locks must be granted again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lockcheck.durations import duration_words
from lockcheck.history import Event, EventType, F, Notice
from lockcheck.history.event import NEMESIS
from lockcheck.nemesis.base import Plan
from lockcheck.nemesis.course.under_way import is_set_within

# As long as the check for stuck locks waits, and a second for busy machines.
LEASES_LAPSED = 2
LEASES_REFUSED = 2
ATTEMPTS = 5
SLACK_MS = 1_000
LONGEST_MS = 120_000


def longest_quiet_ms(plan: Plan) -> int:
    """How long it takes until a lock that is not granted is known to be stuck."""
    lapsed_ms = max(LEASES_LAPSED, plan.lapses_after) * plan.ttl_ms
    attempts_ms = ATTEMPTS * plan.patience_ttls * plan.ttl_ms
    refused_ms = max(LEASES_REFUSED * plan.ttl_ms, attempts_ms, SLACK_MS)
    return min(round(lapsed_ms + refused_ms + SLACK_MS), LONGEST_MS)


class Quiet:
    def __init__(
        self, plan: Plan, *, now_ns: Callable[[], int], record: Callable[[Event], None]
    ) -> None:
        self._longest_ms = longest_quiet_ms(plan)
        self._missing = set(plan.keys)  # not granted yet
        self._asked: set[tuple[int | str, str]] = set()  # (process, key), since it began
        self._all_granted = asyncio.Event()
        self._check()
        self._began_ns = now_ns()
        self._now_ns = now_ns
        self._record = record

    def observe(self, event: Event) -> None:
        if event.f != F.ACQUIRE:
            return
        asked = (event.process, event.key or "")
        if event.time < self._began_ns:
            return  # an older event, read late
        if event.type is EventType.INVOKE:
            self._asked.add(asked)
        elif event.type is EventType.OK and asked in self._asked:
            self._missing.discard(event.key or "")
            self._check()

    def _check(self) -> None:
        if not self._missing:
            self._all_granted.set()

    async def wait(self) -> None:
        """Returns when each lock was asked for and granted, or `longest_quiet_ms` are over."""
        longest = f"at most {duration_words(self._longest_ms)}"
        self._note(EventType.INVOKE, self._began_ns, value=longest)
        if await is_set_within(self._all_granted, self._longest_ms / 1000):
            self._note(EventType.OK, self._now_ns(), value="every lock was granted again")
        else:
            never = ", ".join(sorted(self._missing))
            self._note(EventType.INFO, self._now_ns(), error=f"no client was granted {never}")

    def _note(
        self, kind: EventType, time_ns: int, *, value: str | None = None, error: str | None = None
    ) -> None:
        self._record(Event(time_ns, NEMESIS, kind, Notice.QUIET, value=value, error=error))
