"""Columns of numbers, and texts that are stored once, so that a page with many marks is small."""

from __future__ import annotations

from collections.abc import Iterable

NS_PER_US = 1000
LARGEST_NUMBER = 2**53 - 1

Column = list[int]
Table = dict[str, Column]


def safe_in_script(json: str) -> str:
    for char in "<>&\u2028\u2029":
        json = json.replace(char, f"\\u{ord(char):04x}")
    return json


def drawable(number: int) -> int:
    """A file may hold any number; the script's are exact up to LARGEST_NUMBER."""
    return max(-LARGEST_NUMBER, min(LARGEST_NUMBER, number))


def us(ns: int) -> int:
    return drawable(ns // NS_PER_US)


def or_none(ns: int | None) -> int:
    """-1 for None: a column holds numbers only."""
    return -1 if ns is None else us(ns)


class Numbered:
    """Each text once, in the order of its first use."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        known = self._numbers.get(text)
        if known is None:
            known = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return known


def append(table: Table, names: Iterable[str], values: Iterable[int]) -> None:
    for name, value in zip(names, values, strict=True):
        table[name].append(drawable(value))
