"""Parses a cell of a table, or an attribute. Raises ValueError with the reason."""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from lockcheck.formats.jepsen.edn import DEEPEST

LARGEST_NUMBER = (1 << 63) - 1
LONGEST_NUMBER = 40  # digits, with leading zeros
LARGEST_TTL_MS = (1 << 31) - 1
NOT_LOST = "a notice that the lock was lost cannot have failed"
NO_RENEWAL = "only a renewal can be for another client's hold"
NO_PAIR = "a cas without its pair of expected and new value"


def is_pair(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list) and len(value) == 2


def maybe_number(text: str) -> int | None:
    """The number, None if empty. Plain digits only: Python would also accept `1_000` and `+7`."""
    if not text:
        return None
    digits = text.strip(" ").removeprefix("-")
    if len(digits) <= LONGEST_NUMBER and digits.isascii() and digits.isdigit():
        value = int(text)
        if abs(value) <= LARGEST_NUMBER:
            return value
    raise ValueError(f"not a 64-bit number: {text[:40]!r}")


def json_or_text(text: str) -> object:
    """The JSON value, or the text itself if it is not JSON."""
    if not text:
        return None
    if text[0] in "[{" and max(text.count("["), text.count("{")) > DEEPEST:
        _refuse_depth(text)
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return text
    return value


def _refuse_depth(text: str) -> None:
    depth = deepest = 0
    for sign in text:  # brackets inside strings count, too: real values have few
        depth += (sign in "[{") - (sign in "]}")
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST}")
