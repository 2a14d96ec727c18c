"""Durations as people write them: `500ms`, `1.5s`, `2m`, `1h`; a bare number is seconds. And ranges
of them, from which one is drawn: `1s..3s`."""

from __future__ import annotations

import re
from random import Random
from typing import TypeAlias

import msgspec

from lockcheck.errors import UserError

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "": 1000}
TO = ".."


class DurationRange(msgspec.Struct, frozen=True):
    """Both ends are in it."""

    low_ms: int
    high_ms: int

    def __post_init__(self) -> None:
        if not 0 < self.low_ms <= self.high_ms:
            raise ValueError("a range goes from a duration above zero to one that is no shorter")

    def drawn(self, choices: Random) -> int:
        """Each millisecond of it is as likely as any other."""
        return choices.randint(self.low_ms, self.high_ms)

    def __str__(self) -> str:
        return f"{duration_words(self.low_ms)}{TO}{duration_words(self.high_ms)}"


Duration: TypeAlias = int | DurationRange  # in milliseconds


def parse_duration_ms(text: str) -> int:
    """Milliseconds in a text like `1.5s`; raises UserError if it is not a duration above zero."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)", text.strip())
    if match is None:
        raise UserError(f"{text!r} is not a duration", cure="write it like 500ms, 1.5s or 2m")
    duration_ms = round(float(match[1]) * UNITS_MS[match[2]])
    if duration_ms <= 0:
        raise UserError(f"{text!r} is too short", cure="give a duration above zero, like 1s")
    return duration_ms


def parse_duration_or_range(text: str) -> Duration:
    """A range whose ends are the same is that duration."""
    low, is_range, high = text.partition(TO)
    if not is_range:
        return parse_duration_ms(text)
    low_ms, high_ms = parse_duration_ms(low), parse_duration_ms(high)
    if low_ms > high_ms:
        cure = f"write the shorter one first: {DurationRange(high_ms, low_ms)}"
        raise UserError(f"{text!r} begins with the longer duration", cure=cure)
    return low_ms if low_ms == high_ms else DurationRange(low_ms, high_ms)


def longest_ms(duration: Duration) -> int:
    return duration.high_ms if isinstance(duration, DurationRange) else duration


def duration_words(duration: Duration) -> str:
    """As a person would write it; `parse_duration_or_range` accepts it."""
    if isinstance(duration, DurationRange):
        return str(duration)
    if duration % 1000 == 0:
        return f"{duration // 1000}s"
    short = duration > 1000 and duration % 100 == 0
    return f"{duration / 1000:.1f}s" if short else f"{duration}ms"
