"""Which cells are chosen: `-k "redis and not (clock or pause)"`, as pytest has it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lockcheck.errors import UserError
from lockcheck.matrix.model import Cell

_WORDS = re.compile(r"\(|\)|[^\s()]+")
CURE = 'as in -k redis, or -k "etcd and not (clock or pause)"'


def chosen(cells: Iterable[Cell], text: str) -> tuple[Cell, ...]:
    """Those whose id has the words in it, upper or lower case."""
    found = tuple(cell for cell in cells if _Choice(text, cell.id.lower()).holds())
    if not found:
        raise UserError(f"-k {text!r} chooses no cell", cure="see what there is with --list")
    return found


class _Choice:
    """A parser that goes down the grammar: or, and, not, words."""

    def __init__(self, text: str, id_: str) -> None:
        self._text, self._id = text, id_
        self._words = [word.lower() for word in _WORDS.findall(text)]

    def holds(self) -> bool:
        if not self._words:
            return True
        held = self._any()
        if self._words:
            raise self._wrong(f"at {self._words[0]!r}")
        return held

    def _any(self) -> bool:
        held = self._all()
        while self._next("or"):
            held = self._all() or held
        return held

    def _all(self) -> bool:
        held = self._one()
        while self._next("and"):
            held = self._one() and held
        return held

    def _one(self) -> bool:
        if self._next("not"):
            return not self._one()
        if self._next("("):
            held = self._any()
            if not self._next(")"):
                raise self._wrong("a parenthesis is open")
            return held
        if not self._words or self._words[0] in ("or", "and", ")"):
            raise self._wrong("a word is missing")
        return self._words.pop(0) in self._id

    def _next(self, word: str) -> bool:
        if self._words[:1] == [word]:
            del self._words[0]
            return True
        return False

    def _wrong(self, why: str) -> UserError:
        return UserError(f"-k {self._text!r} cannot be read: {why}", cure=CURE)
