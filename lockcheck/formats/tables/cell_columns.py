"""Parses cells a column at a time: a call per cell would be slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from lockcheck.formats.tables.cells import maybe_number, time_ns
from lockcheck.history.table import NOTHING, Codes, Ints, Mask

ABSENT = -(1 << 63)  # stands for a missing number
DIGITS = 10
T = TypeVar("T")


class CellError(ValueError):
    """The reason, and the cell's place in its column."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(reason)
        self.place = place


class RepeatedTexts(Generic[T]):
    """Numbers for texts that repeat often: each is parsed once; the empty text is NOTHING."""

    def __init__(self, parse: Callable[[str], T]) -> None:
        self.meant: list[T] = []
        self._parse = parse
        self._numbers = {"": NOTHING}

    def numbers(self, cells: Sequence[str]) -> Codes:
        try:
            return self._known(cells)
        except KeyError:
            self._learn(cells)
        return self._known(cells)

    def _known(self, cells: Sequence[str]) -> Codes:
        return np.fromiter(map(self._numbers.__getitem__, cells), np.int32, len(cells))

    def _learn(self, cells: Sequence[str]) -> None:
        for text in dict.fromkeys(cells):
            try:
                self.number(text)
            except ValueError as error:
                raise CellError(cells.index(text), str(error)) from error

    def number(self, text: str) -> int:
        if text not in self._numbers:
            self.meant.append(self._parse(text))
            self._numbers[text] = len(self.meant) - 1
        return self._numbers[text]

    def meaning(self, number: int) -> T | None:
        return None if number == NOTHING else self.meant[number]

    def meanings(self, numbers: Codes) -> list[T | None]:
        meant = self.meant
        return [None if number == NOTHING else meant[number] for number in numbers.tolist()]

    def are(self, numbers: Codes, meant: T) -> Mask:
        known = np.array([*(each == meant for each in self.meant), False])  # NOTHING is -1
        found: Mask = known[numbers]
        return found


def numbers_of(cells: Sequence[str]) -> Ints:
    """The numbers of a column; ABSENT for an empty cell."""
    signs = np.frombuffer("".join(cells).encode(), np.uint8)
    if not (np.subtract(signs, ord("0")) < DIGITS).all():
        return _one_by_one(cells)
    full = cells if all(cells) else [cell or ABSENT for cell in cells]
    try:
        return np.fromiter(map(int, full), np.int64, len(full))
    except (ValueError, OverflowError):  # too long
        return _one_by_one(cells)


def times_of(cells: Sequence[str]) -> Ints:
    """The same of times, which may be dates and times as well."""
    try:
        return numbers_of(cells)
    except CellError:
        return _one_by_one(cells, time_ns)


def _one_by_one(cells: Sequence[str], parse: Callable[[str], int | None] = maybe_number) -> Ints:
    found = np.full(len(cells), ABSENT)
    for place, cell in enumerate(cells):
        try:
            number = parse(cell)
        except ValueError as error:
            raise CellError(place, str(error)) from error
        if number is not None:
            found[place] = number
    return found
