"""What a test gives to the library: checked where it is given."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from lockcheck.errors import UserError


def check_number(value: object, what: str, *, least: int = 1, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise UserError(
            f"{what}={value!r} is not possible", cure=f"a whole number from {least} to {most}"
        )


def check_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise UserError(f"{what} is a text, and {value!r} is none", cure="write it in quotes")


def texts(values: object, what: str, cure: str) -> tuple[str, ...]:
    """A list of texts or paths; one text is no list of its letters."""
    if isinstance(values, str | bytes | os.PathLike) or not isinstance(values, Iterable):
        raise UserError(f"{what} is a list of texts, and {values!r} is none", cure=cure)
    return tuple(_text(value, f"a part of {what}") for value in values)


def command_words(command: object) -> tuple[str, ...]:
    example = 'write ["program", "its", "words"]'
    split = f"shlex.split({command!r}) makes one" if isinstance(command, str) else example
    words = texts(command, "a command", cure=split)
    if not words or not words[0]:
        raise UserError("the command names no program", cure=example)
    return words


def variables(environment: object) -> dict[str, str]:
    if not isinstance(environment, Mapping):
        raise UserError(
            f"an environment is a dict, and {environment!r} is none", cure='{"NAME": "value"}'
        )
    given = {
        _text(name, "the name of a variable"): _text(value, f"the variable {name}")
        for name, value in environment.items()
    }
    for name in given:
        if not name or "=" in name:
            raise UserError(f"{name!r} is no name of a variable", cure='{"NAME": "value"}')
    return given


def _text(value: object, what: str) -> str:
    """Of a path, too."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise UserError(f"{what} is a text, and {value!r} is none", cure=f"write {str(value)!r}")
    if "\0" in text:
        raise UserError(f"{what} cannot have a NUL in it: {text!r}", cure="leave it out")
    return text
