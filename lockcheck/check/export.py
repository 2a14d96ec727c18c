"""Writes a stored history, or another tool's, in another format."""

from __future__ import annotations

import sys
from pathlib import Path

from lockcheck.check.recheck import run_folder
from lockcheck.errors import UserError
from lockcheck.files import writing
from lockcheck.formats import ReadOptions, read_any
from lockcheck.formats.exports.export import left_out, write
from lockcheck.history import History


def export(
    given: str, name: str, options: ReadOptions, to: Path | None, runs: Path
) -> tuple[str, ...]:
    """Writes to a file or to standard output; returns notes on what was ignored or left out."""
    store = run_folder(given, runs)
    source = str(store.history) if store else given
    if to is not None and _is_same(Path(source), to):
        raise UserError(f"{to} is the history itself", cure="choose another --out FILE")
    history, reading = read_any(source, options)
    if to is None:
        _to_standard_output(history, name)
    else:
        _to_file(history, name, to)
    missing = left_out(history, name)
    return (*reading.source.notes, *([missing] if missing else []))


def _is_same(source: Path, to: Path) -> bool:
    try:
        return source.samefile(to)
    except (OSError, ValueError):  # one of them is not there
        return False


def _to_standard_output(history: History, name: str) -> None:
    if sys.__stdout__ is None:
        raise UserError("standard output is closed", cure="open it, or name a file: --out FILE")
    try:
        write(history, name, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise UserError(
            f"standard output cannot be written: {error.strerror}", cure="name a file: --out FILE"
        ) from error


def _to_file(history: History, name: str, to: Path) -> None:
    try:
        with writing(to) as out:
            write(history, name, out)
    except OSError as error:
        raise UserError(
            f"{to} cannot be written: {error.strerror}", cure="choose another --out FILE"
        ) from error
