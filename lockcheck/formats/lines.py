"""A stream as lines of text, none of them longer than a line can be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from lockcheck.errors import HistoryError
from lockcheck.history.files import BYTE_ORDER_MARK, LONGEST_LINE


def read_lines(data: IO[bytes], source: str) -> Iterator[str]:
    """Each with its end, which may be that of Windows."""
    number = 0
    read = data.readline
    while line := read(LONGEST_LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if len(line) > LONGEST_LINE:
            raise HistoryError(f"longer than {LONGEST_LINE} bytes", source=source, line=number)
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            column = len(line[: error.start].decode()) + 1
            raise HistoryError(
                "this is no UTF-8", source=source, line=number, column=column
            ) from error
        yield text
