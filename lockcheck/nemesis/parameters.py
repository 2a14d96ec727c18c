"""The parameters of faults: durations, numbers, rates, choices, flags, read from and written as
text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from lockcheck.durations import (
    DurationRange,
    duration_words,
    parse_duration_ms,
    parse_duration_or_range,
)
from lockcheck.errors import UserError
from lockcheck.nemesis.triggers import Trigger

T = TypeVar("T")
ParameterValue: TypeAlias = int | float | str | bool | DurationRange


@dataclass(frozen=True, slots=True)
class Parameter:
    """`read` raises ValueError with a message for the user."""

    name: str
    meaning: str
    looks: str  # the form of a value, as in the help; empty for a flag, which has no value
    read: Callable[[str], ParameterValue]
    write: Callable[[Any], str]  # of what `read` returns
    default: ParameterValue | None = None

    @property
    def is_flag(self) -> bool:
        return not self.looks

    def words(self) -> str:
        """As in the help: `for=DURATION`, `from=lock|servers (lock)`, `no-data`."""
        if self.is_flag:
            return self.name
        default = "" if self.default is None else f" ({self.write(self.default)})"
        return f"{self.name}={self.looks}{default}"


def duration(
    name: str, meaning: str, *, default: ParameterValue | None = None, or_word: str = ""
) -> Parameter:
    """Its value is in milliseconds, a range that one is drawn from for each strike, or the word
    `or_word`."""
    looks = f"DURATION|{or_word}" if or_word else "DURATION"

    def read(text: str) -> ParameterValue:
        if or_word and text == or_word:
            return or_word
        return _read(parse_duration_or_range, text)

    return Parameter(name, meaning, looks, read, _write_duration, default)


def signed_duration(name: str, meaning: str, *, default: int | None = None) -> Parameter:
    def read(text: str) -> ParameterValue:
        sign, rest = text[:1], text[1:]
        if sign not in ("+", "-"):
            raise ValueError("write it with its sign, like +30s or -500ms")
        return _read(parse_duration_ms, rest) * (-1 if sign == "-" else 1)

    def write(value: int) -> str:
        return ("-" if value < 0 else "+") + duration_words(abs(value))

    return Parameter(name, meaning, "±DURATION", read, write, default)


def number(
    name: str, meaning: str, *, low: float, high: float, default: float | None = None
) -> Parameter:
    def read(text: str) -> ParameterValue:
        try:
            value = float(text)
        except ValueError:
            raise ValueError(f"write a number from {low:g} to {high:g}") from None
        if not low <= value <= high:
            raise ValueError(f"it goes from {low:g} to {high:g}")
        return value

    return Parameter(name, meaning, "NUMBER", read, lambda value: repr(float(value)), default)


def rate(name: str, meaning: str, *, low: int, high: int, default: int | None = None) -> Parameter:
    """Its value is in bits per second."""
    units = {"mbit": 1_000_000, "kbit": 1000, "bit": 1}

    def read(text: str) -> ParameterValue:
        unit = next((unit for unit in units if text.endswith(unit)), "")
        digits = text.removesuffix(unit)
        if not unit or not digits.isascii() or not digits.isdecimal():
            raise ValueError("write it with its unit, like 8kbit or 1mbit")
        value = int(digits[:12]) * units[unit]
        if not low <= value <= high:
            raise ValueError(f"it goes from {write(low)} to {write(high)}")
        return value

    def write(bits: int) -> str:
        unit = next(unit for unit, size in units.items() if bits % size == 0)
        return f"{bits // units[unit]}{unit}"

    return Parameter(name, meaning, "RATE", read, write, default)


def choice(
    name: str, meaning: str, choices: tuple[str, ...], *, default: str | None = None
) -> Parameter:
    def read(text: str) -> ParameterValue:
        if text not in choices:
            raise ValueError(f"choose from: {', '.join(choices)}")
        return text

    return Parameter(name, meaning, "|".join(choices), read, str, default)


def flag(name: str, meaning: str) -> Parameter:
    return Parameter(name, meaning, "", lambda _text: True, lambda _value: "", default=False)


def _read(parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except UserError as error:
        raise ValueError(error.cure) from error


def _write_duration(value: ParameterValue) -> str:
    return str(value) if isinstance(value, str | float) else duration_words(value)


# The parameters of every fault.
FOR = duration("for", "how long it lasts")
GAP = duration("gap", "the pause before it, each time it is repeated")
WHEN = choice("when", "what it waits for after the pause", tuple(Trigger))
GENERAL = (FOR, GAP, WHEN)
