"""The text of a file, and the place of every character in it."""

from __future__ import annotations

from typing import IO

from lockcheck.errors import HistoryError

LARGEST = 1 << 31  # bytes: some twenty million operations, more than are judged event by event


class Text:
    """A text that can name the line and column of any character."""

    def __init__(self, text: str, source: str, line: int = 1) -> None:
        self.text = text
        self._source = source
        self._line = line  # as of `_counted`
        self._line_start = 0
        self._counted = 0

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a character. Offsets must not decrease from call to call."""
        lines = self.text.count("\n", self._counted, offset)
        if lines:
            self._line += lines
            self._line_start = self.text.rfind("\n", self._counted, offset) + 1
        self._counted = max(self._counted, offset)
        return self._line, max(1, offset - self._line_start + 1)

    def error(self, reason: str, offset: int) -> HistoryError:
        line, column = self.place(offset)
        return HistoryError(reason, source=self._source, line=line, column=column)


def read_text(data: IO[bytes], source: str, line: int = 1, begun: bytes = b"") -> Text:
    """The rest of a stream after `begun`, which was read already, from `line` on."""
    given = begun + data.read(LARGEST + 1)
    if len(given) > LARGEST:
        raise HistoryError(f"longer than {LARGEST} bytes", source=source)
    try:
        return Text(given.decode("utf-8-sig"), source, line)
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8-sig")
        raise Text(before, source, line).error("not valid UTF-8", len(before)) from error
