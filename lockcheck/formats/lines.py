"""A stream as lines of text, none of them longer than allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO

from lockcheck.errors import HistoryError
from lockcheck.history.files import BYTE_ORDER_MARK, LONGEST_LINE


def bounded(data: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream; of one that is too long, just enough to show that."""
    return iter(partial(data.readline, LONGEST_LINE + 1), b"")


def read_lines(lines: Iterable[bytes], source: str, before: int = 0) -> Iterator[str]:
    """The lines as text, with their line ends; `before` lines have been read already."""
    for number, given in enumerate(lines, before + 1):
        line = given.removeprefix(BYTE_ORDER_MARK) if number == 1 else given
        if len(line) > LONGEST_LINE:
            raise HistoryError(f"longer than {LONGEST_LINE} bytes", source=source, line=number)
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            column = len(line[: error.start].decode()) + 1
            raise HistoryError(
                "not valid UTF-8", source=source, line=number, column=column
            ) from error
        yield text
