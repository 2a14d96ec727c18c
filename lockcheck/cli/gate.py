"""The one gate to a terminal for words that are not ours: of histories, servers, files, the engine.

Nothing that passes can move the cursor, colour what follows, turn it around, or begin a line.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress

import click
import msgspec

UNHEARD = (OSError, ValueError, AttributeError)  # the stream is closed, full, or not there


def printable(text: str) -> str:
    """On one line."""
    return "".join(c if c.isprintable() else " " if c == "\n" else "?" for c in text)


def lines_of(text: str) -> list[str]:
    """Where more than one line is meant, as of a server's last words: to be indented."""
    return [printable(line) for line in text.split("\n")]


def as_json(value: object) -> str:
    """No character that a terminal might obey: JSON can write them all by their numbers."""
    return json.dumps(msgspec.to_builtins(value))


def say(text: str) -> None:
    click.echo(printable(text))


def print_error(message: str, cure: str = "") -> None:
    """Where nobody can be told, the exit code still says it."""
    first, *more = lines_of(message)
    lines = [f"lockcheck: {first}", *(f"  {line}" for line in more)]
    lines += [f"  cure: {printable(cure)}"] if cure else []
    with suppress(*UNHEARD):
        sys.stderr.write("".join(f"{line}\n" for line in lines))
