"""EDN's numbers, strings and characters. Raises ValueError with the reason."""

from __future__ import annotations

import math
import re

LONGEST_NUMBER = 1000  # digits
INTEGER = re.compile(r"[+-]?[0-9]+N?")
DECIMAL = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?M?")
ODD_NUMBER = re.compile(r"[+-]?(?:[0-9]+/[0-9]+|0[xX][0-9a-fA-F]+|[0-9]{1,2}[rR][0-9a-zA-Z]+)N?")
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([0-7]{1,3})|(.))", re.DOTALL)
ESCAPED = {"t": "\t", "r": "\r", "n": "\n", "b": "\b", "f": "\f", "\\": "\\", '"': '"'}
CHARACTERS = {
    "newline": "\n",
    "return": "\r",
    "space": " ",
    "tab": "\t",
    "formfeed": "\f",
    "backspace": "\b",
}
CONSTANTS: dict[str, object] = {"nil": None, "true": True, "false": False}


def read_number(word: str) -> object:
    if len(word) > LONGEST_NUMBER:
        raise ValueError(f"a number of more than {LONGEST_NUMBER} digits")
    if INTEGER.fullmatch(word):
        return int(word.rstrip("N"))
    if DECIMAL.fullmatch(word):
        value = float(word.rstrip("M"))
        if math.isinf(value):
            raise ValueError(f"a number out of range: {word[:40]}")
        return value
    if word[0] in "+-" and word[1:2] not in tuple("0123456789"):
        return word  # a symbol
    if not ODD_NUMBER.fullmatch(word):
        raise ValueError(f"not a number: {word[:40]}")
    return word


def text(word: str) -> str:
    if len(word) == 1:
        raise ValueError("a text without an end")
    if "\\" not in word:
        return word[1:-1]
    return _whole(ESCAPE.sub(_escape, word[1:-1]))


def _escape(match: re.Match[str]) -> str:
    unit, octal, letter = match.groups()
    if letter is None:
        return chr(int(unit, 16) if unit else int(octal, 8))
    if letter not in ESCAPED:
        raise ValueError(f"unknown escape: \\{letter}")
    return ESCAPED[letter]


def character(word: str) -> str:
    name = word[1:]
    if len(name) == 1:
        return name
    if name in CHARACTERS:
        return CHARACTERS[name]
    if re.fullmatch(r"u[0-9a-fA-F]{4}", name):
        return _whole(chr(int(name[1:], 16)))
    raise ValueError(f"not a character: {word[:40]}" if name else "a character without an end")


def _whole(text: str) -> str:
    """Joins surrogate pairs (Java writes some characters as two); lone surrogates are replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
