"""Parses a cell of a table, or an attribute. Raises ValueError with the reason."""

from __future__ import annotations

import re
from datetime import date
from enum import StrEnum
from functools import lru_cache
from typing import TypeGuard

import msgspec

from lockcheck.formats.jepsen.edn import DEEPEST
from lockcheck.history.event import Refusal

LARGEST_NUMBER = (1 << 63) - 1
LONGEST_NUMBER = 40  # digits, with leading zeros
LARGEST_TTL_MS = (1 << 31) - 1
NOT_LOST = "a notice that the lock was lost cannot have failed"
NO_RENEWAL = "only a renewal can be for another client's hold"
NO_RELEASE = "only a release can say what it released"
NO_REFUSAL = "only what failed can have been refused"
NO_PAIR = "a cas without its pair of expected and new value"


TRUE, FALSE = ("true", "yes", "1"), ("false", "no", "0")
ISO_TIME = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<h>\d\d):(?P<m>\d\d)(:(?P<s>\d\d)([.,](?P<ns>\d{1,9})\d*)?)?"
    r" ?(Z|(?P<sign>[+-])(?P<zh>\d\d):?(?P<zm>\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)
NS_PER_S = 1_000_000_000


class Released(StrEnum):
    """What a release's answer says of the lock."""

    TRUE = "true"  # it was still held, and is released
    FALSE = "false"  # it was lost before: there was nothing to release
    UNSAID = "unsaid"  # it is `ok` in either case


def released(text: str) -> Released:
    word = text.strip().lower()
    if word in TRUE + FALSE:
        return Released.TRUE if word in TRUE else Released.FALSE
    if word != Released.UNSAID:
        raise ValueError(f"neither true, false nor unsaid: {text[:40]!r}")
    return Released.UNSAID


def refusal(text: str) -> Refusal:
    word = text.strip().lower()
    if word not in list(Refusal):
        raise ValueError(f"none of {', '.join(Refusal)}: {text[:40]!r}")
    return Refusal(word)


def flag(text: str) -> bool:
    word = text.strip().lower()
    if word not in TRUE + FALSE:
        raise ValueError(f"neither true nor false: {text[:40]!r}")
    return word in TRUE


def time_ns(text: str) -> int | None:
    """Nanoseconds: as a number, or as date and time since 1970 (UTC, if it names no zone)."""
    found = ISO_TIME.fullmatch(text.strip(" "))
    if found is None:
        return maybe_number(text)
    hours, minutes, seconds = (int(found[name] or 0) for name in "hms")
    day_s = _day_s(found["date"]) + hours * 3600 + minutes * 60 + seconds
    if found["sign"]:
        zone_s = int(found["zh"]) * 3600 + int(found["zm"] or 0) * 60
        day_s -= zone_s if found["sign"] == "+" else -zone_s
    return day_s * NS_PER_S + int((found["ns"] or "0").ljust(9, "0"))


@lru_cache(maxsize=1000)
def _day_s(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days * 86_400


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
