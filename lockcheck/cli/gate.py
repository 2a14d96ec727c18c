"""All text from outside (histories, servers, files, the engine) reaches a terminal through here.

It cannot move the cursor, colour or reverse what follows, or start a new line.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress

import click
import msgspec

from lockcheck.results.printable import lines_of, plain, printable

__all__ = ["UNHEARD", "as_json", "lines_of", "note", "plain", "print_error", "printable", "say"]

UNHEARD = (OSError, ValueError, AttributeError)  # the stream is closed, full, or not there


def as_json(value: object) -> str:
    """Without characters that a terminal might interpret: JSON can escape them all."""
    return json.dumps(msgspec.to_builtins(value))


def say(text: str) -> None:
    click.echo(printable(text))


def note(text: str) -> None:
    """A line of progress."""
    with suppress(*UNHEARD):
        click.secho(f"· {printable(text)}", err=True, dim=True)


def print_error(message: str, cure: str = "") -> None:
    """Does nothing if the stream is closed: the exit code reports the error, too."""
    first, *more = lines_of(message)
    lines = [f"lockcheck: {first}", *(f"  {line}" for line in more)]
    lines += [f"  cure: {printable(cure)}"] if cure else []
    with suppress(*UNHEARD):
        sys.stderr.write("".join(f"{line}\n" for line in lines))
