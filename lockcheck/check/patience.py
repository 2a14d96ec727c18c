"""Time limits of searches: the judges have no clock, and call this."""

from __future__ import annotations

import time

from lockcheck.checker.linearizability.answer import GIGABYTE, Patience

FOR_A_RUN_MS = 60_000


def patient_for(length_ms: int, most_bytes: int = GIGABYTE) -> Patience:
    """A limit that starts with the first search: reading a long history does not count."""
    began: list[float] = []

    def may_go_on() -> bool:
        now = time.monotonic()
        if not began:
            began.append(now)
        return now < began[0] + length_ms / 1000

    return Patience(may_go_on, most_bytes)
