"""The JSON objects of a stream, one at a time: one by one, or the elements of one array."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, Generic, NamedTuple, TypeVar

import msgspec

from lockcheck.errors import HistoryError
from lockcheck.formats.edn import DEEPEST
from lockcheck.formats.text import Text
from lockcheck.history.files import LONE, lone_surrogate

LONGEST_DOCUMENT = 1 << 26
STRUCTURE = re.compile(
    r"""[^{}\[\]"]*+ (?: \Z | ( [{}\[\]] | "[^"\\]*+(?:\\.[^"\\]*+)*+" | " ) )""",
    re.VERBOSE | re.DOTALL,
)
BETWEEN = re.compile(r"[\s,]*")
BYTE = re.compile(r" \(byte (\d+)\)$")
T = TypeVar("T")


class Document(NamedTuple, Generic[T]):
    value: T
    line: int
    column: int


def read_documents(
    data: IO[bytes], source: str, decode: Callable[[str], T], *, by_lines: bool = False
) -> Iterator[Document[T]]:
    """With `by_lines` a line that is a document is taken as it stands: where what is decoded cannot
    be nested deeply."""
    return _Splitter(Text(data, source), decode, by_lines=by_lines).documents()


class _Splitter(Generic[T]):
    def __init__(self, text: Text, decode: Callable[[str], T], *, by_lines: bool) -> None:
        self._by_lines = by_lines
        self._text = text
        self._decode = decode
        self._begun = False
        self._wrapper = False
        self._depth = 0  # inside the document
        self._start = 0  # of the document, or of what is between two
        self._scanned = 0

    def documents(self) -> Iterator[Document[T]]:
        while True:
            yield from self._in_window()
            if self._text.ended:
                break
            if len(self._text.window) - self._start > LONGEST_DOCUMENT:
                raise self._error(f"longer than {LONGEST_DOCUMENT} characters", self._start)
            self._text.more(self._start)
            self._scanned -= self._start
            self._start = 0
        self._between(len(self._text.window))
        if self._depth or self._wrapper:
            raise self._error("the file ends inside an object", len(self._text.window))

    def _lines(self) -> Iterator[Document[T]]:
        """As long as each is a document."""
        window, text = self._text.window, self._text
        while end := window.find("\n", self._start) + 1 or (len(window) if text.ended else 0):
            line, column = text.place(self._start)
            try:
                document = Document(self._decode(window[self._start : end]), line, column)
            except (msgspec.DecodeError, RecursionError, UnicodeError):
                self._by_lines = False
                return
            yield document
            self._begun, self._start, self._scanned = True, end, end

    def _in_window(self) -> Iterator[Document[T]]:
        if self._by_lines:
            yield from self._lines()
        if self._by_lines:
            return
        window, text = self._text.window, self._text
        for match in STRUCTURE.finditer(window, self._scanned):
            word, at = match[1], match.start(1)
            if word is None:
                break
            if word == '"' and not text.ended:
                self._scanned = at
                return
            if not self._depth:
                self._outside(word, at)
            elif word in ("{", "["):
                self._deeper(at)
            elif word in ("}", "]"):
                self._depth -= 1
                if not self._depth:
                    yield self._decoded(self._start, at + 1)
                    self._start = at + 1
        self._scanned = len(window)

    def _outside(self, word: str, at: int) -> None:
        self._between(at)
        if word == "{":
            self._deeper(at)
            self._start = at
        elif word == "[" and not self._begun:
            self._wrapper, self._start = True, at + 1
        elif word == "]" and self._wrapper:
            self._wrapper, self._start = False, at + 1
        else:
            raise self._error("expected an object here", at)
        self._begun = True

    def _between(self, end: int) -> None:
        if self._depth:
            return
        found = BETWEEN.match(self._text.window, self._start, end)
        if found is None or found.end() != end:
            at = found.end() if found else self._start
            raise self._error("expected an object here", at)

    def _deeper(self, at: int) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(f"nested deeper than {DEEPEST}", at)

    def _decoded(self, start: int, end: int) -> Document[T]:
        line, column = self._text.place(start)
        document = self._text.window[start:end]
        try:
            return Document(self._decode(document), line, column)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            reason, offset = _located(str(error), document)
            raise self._error(reason, start + offset) from error

    def _error(self, reason: str, offset: int) -> HistoryError:
        return self._text.error(reason, offset)


def _located(reason: str, document: str) -> tuple[str, int]:
    """The decoder counts bytes from the beginning of the document."""
    found = BYTE.search(reason)
    lone = lone_surrogate(reason, document)
    if lone is not None:
        return LONE, lone
    if found is None:
        return reason, 0
    before = document.encode()[: int(found[1])].decode(errors="ignore")
    return reason[: found.start()], len(before)
