"""Results as NDJSON: one on each line, for programs, and for the next campaign to compare with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from lockcheck.errors import UserError
from lockcheck.files import read_document
from lockcheck.matrix.model import Result


def ndjson(results: Iterable[Result]) -> bytes:
    return msgspec.json.Encoder().encode_lines(results)


def read_results(path: Path) -> tuple[Result, ...]:
    """Raises a UserError that names the line."""
    try:
        lines = read_document(path).splitlines()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    return tuple(_result(path, number, line) for number, line in enumerate(lines, 1) if line)


def _result(path: Path, number: int, line: bytes) -> Result:
    try:
        return msgspec.json.decode(line, type=Result)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UserError(f"{path}, line {number}, is no result of a trial: {error}") from error
