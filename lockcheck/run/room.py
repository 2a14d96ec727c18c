"""Whether the history of a run can be judged in this host's memory: said before it starts."""

from __future__ import annotations

from pathlib import Path

from lockcheck.config import RunConfig
from lockcheck.durations import duration_words

# Measured: a client that only retries writes so many lines, and judging takes so much of each.
LINES_A_SECOND = 100
BYTES_A_LINE = 600
ALWAYS_BYTES = 100_000_000
STEPS_MS = (3_600_000, 60_000, 1000)


def too_long(config: RunConfig, available: int | None) -> str:
    """What to say about it; empty if there is room, or nobody knows how much there is."""
    lines = config.clients * LINES_A_SECOND * config.time_limit_ms // 1000
    needed = ALWAYS_BYTES + lines * BYTES_A_LINE
    if available is None or needed <= available:
        return ""
    fits_ms = (available - ALWAYS_BYTES) * config.time_limit_ms // (lines * BYTES_A_LINE)
    step_ms = next((step for step in STEPS_MS if fits_ms >= step), fits_ms + 1)
    fits_ms = fits_ms // step_ms * step_ms
    fits = f"; --time-limit {duration_words(fits_ms)} fits" if fits_ms > 0 else ""
    return (
        f"about {lines / 1e6:,.0f} million lines of history may take {needed / 1e9:,.1f} GB"
        f" to judge, and {available / 1e9:,.1f} GB are available{fits}"
    )


def available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    for line in meminfo.read_text().splitlines() if meminfo.exists() else ():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.split()[0]) * 1024
    return None
