"""The JSON objects of a stream, one at a time: one after the other, or the elements of one
array."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from lockcheck.formats.jepsen.edn import DEEPEST
from lockcheck.formats.text import LARGEST, Text, read_text
from lockcheck.history.files import LONE, lone_surrogate

STRUCTURE = re.compile(
    r"""[^{}\[\]"]*+ (?: \Z | ( [{}\[\]] | "[^"\\]*+(?:\\.[^"\\]*+)*+" | " ) )""",
    re.VERBOSE | re.DOTALL,
)
BETWEEN = re.compile(r"[\s,]*")
BYTE = re.compile(r" \(byte (\d+)\)$")
T = TypeVar("T")
Decode: TypeAlias = Callable[[str | bytes], T]


class Document(NamedTuple, Generic[T]):
    value: T
    line: int
    column: int


def read_documents(data: IO[bytes], source: str, decode: Decode[T]) -> Iterator[Document[T]]:
    return _Splitter(read_text(data, source), decode).documents()


def read_lines_of_documents(
    data: IO[bytes], source: str, decode: Decode[T]
) -> Iterator[Document[T]]:
    """Like `read_documents`, faster for one document a line, for types without deep nesting."""
    line = 1
    while given := data.readline(LARGEST + 1):
        try:
            whole = given if given.isascii() else given.decode("utf-8-sig")
            document = Document(decode(whole), line, 1)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            break
        yield document
        del document
        line += 1
    rest = read_text(data, source, line, given)
    yield from _Splitter(rest, decode, begun=line > 1).documents()


class _Splitter(Generic[T]):
    """Finds where each document begins and ends."""

    def __init__(self, text: Text, decode: Decode[T], *, begun: bool = False) -> None:
        self._text = text
        self._decode = decode
        self._begun = begun
        self._wrapper = False
        self._depth = 0  # inside the document
        self._start = 0  # of the document, or of the gap between two

    def documents(self) -> Iterator[Document[T]]:
        for match in STRUCTURE.finditer(self._text.text):
            word, at = match[1], match.start(1)
            if word is None:
                break
            if not self._depth:
                self._outside(word, at)
            elif word in ("{", "["):
                self._deeper(at)
            elif word in ("}", "]"):
                self._depth -= 1
                if not self._depth:
                    yield self._decoded(self._start, at + 1)
                    self._start = at + 1
        end = len(self._text.text)
        self._between(end)
        if self._depth or self._wrapper:
            raise self._text.error("the file ends inside an object", end)

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
            raise self._text.error("expected an object here", at)
        self._begun = True

    def _between(self, end: int) -> None:
        if self._depth:
            return
        found = BETWEEN.match(self._text.text, self._start, end)
        if found is None or found.end() != end:
            at = found.end() if found else self._start
            raise self._text.error("expected an object here", at)

    def _deeper(self, at: int) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._text.error(f"nested deeper than {DEEPEST}", at)

    def _decoded(self, start: int, end: int) -> Document[T]:
        line, column = self._text.place(start)
        document = self._text.text[start:end]
        try:
            return Document(self._decode(document), line, column)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            reason, offset = _located(str(error), document)
            raise self._text.error(reason, start + offset) from error


def _located(reason: str, document: str) -> tuple[str, int]:
    """The reason without its byte, and the offset as a number of characters."""
    found = BYTE.search(reason)
    lone = lone_surrogate(reason, document)
    if lone is not None:
        return LONE, lone
    if found is None:
        return reason, 0
    before = document.encode()[: int(found[1])].decode(errors="ignore")
    return reason[: found.start()], len(before)
