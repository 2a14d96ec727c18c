"""Text out of a stream, a piece at a time, with the place of every character in it.

Whole lines would be simpler, but a history may be one single line of a gigabyte.
"""

from __future__ import annotations

import codecs
from typing import IO

from lockcheck.errors import HistoryError

PIECE = 1 << 18


class Text:
    """A window that moves over the stream: `window` is what is being read, `more` moves it on."""

    def __init__(self, data: IO[bytes], source: str) -> None:
        self.source = source
        self.window = ""
        self.ended = False
        self._data = data
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._before = 0  # characters that lie before the window
        self._line = 1  # as of `_counted`
        self._line_start = 0
        self._counted = 0
        self.more(0)

    def more(self, done: int) -> None:
        """Drops `done` characters of the window and puts the next piece behind the rest."""
        self.place(done)
        self._before += done
        rest = self.window[done:]
        piece = self._data.read(max(PIECE, len(rest)))  # what is long is not copied too often
        self.ended = not piece
        try:
            self.window = rest + self._decode(piece, final=self.ended)
        except UnicodeDecodeError as error:
            self.window = rest + error.object[: error.start].decode("utf-8-sig")
            raise self.error("not valid UTF-8", len(self.window)) from error

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a character of the window, or of one that was asked for before it."""
        start = max(0, self._counted - self._before)
        if offset > start:
            lines = self.window.count("\n", start, offset)
            if lines:
                self._line += lines
                self._line_start = self._before + self.window.rfind("\n", start, offset) + 1
            self._counted = self._before + offset
        return self._line, max(1, self._before + offset - self._line_start + 1)

    def error(self, reason: str, offset: int) -> HistoryError:
        line, column = self.place(offset)
        return HistoryError(reason, source=self.source, line=line, column=column)
