"""Durations as people write them: `500ms`, `1.5s`, `2m`, `1h`; a bare number is seconds."""

from __future__ import annotations

import re

from lockcheck.errors import UserError

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "": 1000}


def parse_duration_ms(text: str) -> int:
    """Milliseconds in a text like `1.5s`; raises UserError if it is not a duration above zero."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)", text.strip())
    if match is None:
        raise UserError(f"{text!r} is not a duration", cure="write it like 500ms, 1.5s or 2m")
    duration_ms = round(float(match[1]) * UNITS_MS[match[2]])
    if duration_ms <= 0:
        raise UserError(f"{text!r} is too short", cure="give a duration above zero, like 1s")
    return duration_ms


def duration_words(duration_ms: int) -> str:
    """The duration as a person would write it; `parse_duration_ms` accepts it."""
    if duration_ms % 1000 == 0:
        return f"{duration_ms // 1000}s"
    short = duration_ms > 1000 and duration_ms % 100 == 0
    return f"{duration_ms / 1000:.1f}s" if short else f"{duration_ms}ms"
