"""The words of `--nemesis`, and the one parser of them.

    nemesis = step { " then " step } | "none" | "all"
    step    = FAULT [ ":" word { "," word } ]
    word    = AIM | FLAG | NAME "=" VALUE          the last one may end with "@" AIM

A sequence is repeated, in its order, for as long as the run lasts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lockcheck.errors import UserError
from lockcheck.nemesis.base import Aim, FaultKind, Kinds, Step
from lockcheck.nemesis.parameters import Parameter, ParameterValue

NO_FAULT = "none"
ALL = "all"  # drawn by the seed: see drawing.py
Sequence = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int  # in the whole text

    def split(self, pattern: str) -> Iterator[_Word]:
        """Its parts, stripped."""
        start = 0
        for match in [*re.finditer(pattern, self.text), None]:
            end = len(self.text) if match is None else match.start()
            yield self._part(start, end)
            start = end if match is None else match.end()

    def partition(self, separator: str) -> tuple[_Word, _Word | None]:
        head, found, _ = self.text.partition(separator)
        after = len(head) + len(separator)
        return self._part(0, len(head)), self._part(after, len(self.text)) if found else None

    def _part(self, start: int, end: int) -> _Word:
        part = self.text[start:end]
        return _Word(part.strip(), self.start + start + len(part) - len(part.lstrip()))


class _Wrong(Exception):
    def __init__(self, word: _Word, reason: str, cure: str) -> None:
        super().__init__(reason)
        self.word, self.reason, self.cure = word, reason, cure


def parse(text: str, kinds: Kinds) -> Sequence:
    """() for `none`, the control run. Raises a UserError that points at the word."""
    if text.strip() == NO_FAULT:
        return ()
    try:
        return tuple(_step(part, kinds) for part in _Word(text, 0).split(r"\sthen(?=\s|$)"))
    except _Wrong as wrong:
        raise UserError(
            f"unknown nemesis {text!r}: {wrong.reason}{_pointing(text, wrong.word)}",
            cure=wrong.cure,
        ) from None


def _pointing(text: str, word: _Word) -> str:
    under = " " * word.start + "^" * max(1, len(word.text))
    return f"\n    {text}\n    {under}" if text.isprintable() else ""


def sequence_words(sequence: Sequence) -> str:
    return " then ".join(map(str, sequence)) or NO_FAULT


def choices(kinds: Kinds) -> list[str]:
    """The plain forms of all faults, the short ones first."""
    aimed = [f"{kind.name}:{aim.name}" for kind in kinds.values() for aim in kind.aims]
    return [NO_FAULT, *kinds, *aimed]


def _step(part: _Word, kinds: Kinds) -> Step:
    head, rest = part.partition(":")
    kind = kinds.get(head.text)
    if kind is None:
        raise _Wrong(head, _what_is_wrong_with(head.text), _known_faults(kinds))
    words = () if rest is None else tuple(rest.split(","))
    return _Building(kind).with_words(words)


def _what_is_wrong_with(name: str) -> str:
    if not name:
        return "a fault is missing"
    return (
        f"{name!r} cannot be combined or aimed"
        if name in (NO_FAULT, ALL)
        else f"unknown fault {name!r}"
    )


def _known_faults(kinds: Kinds) -> str:
    example = next((text for text in choices(kinds) if text.endswith(":server")), NO_FAULT)
    return f"choose from: {', '.join((NO_FAULT, ALL, *kinds))}; with an aim, as in {example}"


class _Building:
    def __init__(self, kind: FaultKind) -> None:
        self._kind = kind
        self._aims = {word: aim for aim in kind.aims for word in (aim.name, aim.also) if word}
        self._parameters = {p.name: p for p in kind.all_parameters}
        self._aim: Aim | None = None
        self._given: dict[str, ParameterValue] = {}

    def with_words(self, words: tuple[_Word, ...]) -> Step:
        for word in words[:-1]:
            self._take(word)
        for last in words[-1:]:
            self._take_last(last)
        in_order = tuple(
            (name, self._given[name]) for name in self._parameters if name in self._given
        )
        return Step(self._kind, self._aim or self._kind.aims[0], in_order)

    def _take_last(self, word: _Word) -> None:
        first, aim = word.partition("@")
        if first.text or aim is None:
            self._take(first)
        if aim is not None:
            self._take_aim(aim)

    def _take(self, word: _Word) -> None:
        name, value = word.partition("=")
        if value is None and name.text in self._aims:
            self._take_aim(name)
            return
        parameter = self._parameters.get(name.text)
        if parameter is None:
            raise self._unknown(name)
        if parameter.name in self._given:
            raise _Wrong(name, f"{parameter.name} is given twice", "give it once")
        self._given[parameter.name] = self._value(parameter, name, value)

    def _value(self, parameter: Parameter, name: _Word, value: _Word | None) -> ParameterValue:
        if (value is None) != parameter.is_flag:
            wrong = "takes no value" if parameter.is_flag else "needs a value"
            raise _Wrong(value or name, f"{name.text} {wrong}", f"write it {parameter.words()}")
        try:
            return parameter.read(value.text if value else "")
        except ValueError as error:
            raise _Wrong(
                value or name, f"{parameter.name} cannot be {value and value.text!r}", str(error)
            ) from error

    def _take_aim(self, word: _Word) -> None:
        if word.text not in self._aims:
            raise self._unknown(word)
        if self._aim is not None:
            raise _Wrong(word, "it has two aims", "give one, or add another --nemesis")
        self._aim = self._aims[word.text]

    def _unknown(self, word: _Word) -> _Wrong:
        name = self._kind.name
        what = (
            f"{name} does not take {word.text!r}"
            if word.text
            else f"a parameter of {name} is missing"
        )
        aims = f"an aim, as in {name}:{self._kind.aims[0].name} ({', '.join(self._aims)})"
        parameters = ", ".join(p.words() for p in self._parameters.values())
        return _Wrong(word, what, f"it takes {aims}; and {parameters}")
