"""A stored history, or somebody else's, in another format."""

from __future__ import annotations

import sys
from pathlib import Path

from lockcheck.errors import UserError
from lockcheck.formats import Asked, read_any
from lockcheck.formats.export import write
from lockcheck.recheck import run_folder


def export(given: str, name: str, asked: Asked, to: Path | None, runs: Path) -> tuple[str, ...]:
    """Into a file, or onto standard output. What was left out in reading, and why."""
    store = run_folder(given, runs)
    history, reading = read_any(str(store.history) if store else given, asked)
    if to is None:
        write(history, name, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return tuple(reading.source.notes)
    try:
        with to.open("wb") as out:
            write(history, name, out)
    except OSError as error:
        raise UserError(
            f"{to} cannot be written: {error.strerror}", cure="choose another --out FILE"
        ) from error
    return tuple(reading.source.notes)
