"""The limits of searches: the judges have no clock, and ask this."""

from __future__ import annotations

import time

from lockcheck.checker.linearizability.answer import GIGABYTE, Patience

FOR_A_RUN_MS = 60_000


def patient_for(length_ms: int, most_bytes: int = GIGABYTE) -> Patience:
    """The time counts from the first search on: reading a long history takes none of it."""
    began: list[float] = []

    def may_go_on() -> bool:
        now = time.monotonic()
        if not began:
            began.append(now)
        return now < began[0] + length_ms / 1000

    return Patience(may_go_on, most_bytes)
