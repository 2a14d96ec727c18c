"""Reads EDN, the notation of Clojure's data, as data: nothing in it is ever looked up or run.

Values that JSON has are read as from JSON. The rest is read so that equal values stay equal: a
keyword inside a value as a string with the colon (as a key or value of the outermost map it is a
`Keyword`), a symbol or character as a string, a set as a sorted list, a date or unknown tag as the
value behind it. Numbers like `7N` and `1.5M` are numbers, ratios and infinities strings. `#_`
discards, `;` comments, commas are blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, NamedTuple

import msgspec

from lockcheck.errors import HistoryError
from lockcheck.formats.jepsen.edn_atoms import CONSTANTS, character, read_number, text
from lockcheck.formats.text import Text, read_text

DEEPEST = 64
MANY_NAMES = 10_000


class Keyword(str):
    """A keyword like `:name`, without its colon."""

    __slots__ = ()


class Pair(list[object]):
    """A key and a value: `#jepsen.independent.Tuple [k v]`."""


class Form(NamedTuple):
    value: object
    line: int
    column: int


NAME = r"""[^\s,;"(){}\[\]\\#]++"""
PLAIN = rf"(?: :{NAME} | -?[0-9]{{1,18}}+ | nil | true | false )"
VALUE = rf"""(?: {PLAIN} | "[^"\\]*+" | \[[\s,]*+(?:{PLAIN}(?=[\s,\]])[\s,]*+)*+\] )"""
# Most operations look like this, so they are read as a whole.
FLAT_MAP = rf"\{{[\s,]*+(?: :{NAME}[\s,]++{VALUE}(?=[\s,}}])[\s,]*+ )*+\}}"
ENTRY = re.compile(rf""":({NAME})[\s,]++("[^"]*+"|\[[^\]]*+\]|:?{NAME})""")
TOKEN = re.compile(
    rf"""
    [\s,]*+ (?: \Z | (
      {FLAT_MAP}
    | {NAME}
    | "[^"\\]*+(?:\\.[^"\\]*+)*+"                   # a string
    | [\[\](){{}}]
    | \\(?:[a-zA-Z0-9]++|.)                         # a character
    | \#[{{_] | \#\#?[^\s,;"(){{}}\[\]\\]*+          # a set, a discard, a tag, an infinity
    | ;[^\n]*+
    | ["\\]                                         # an unterminated string or character
    ))
    """,
    re.VERBOSE | re.DOTALL,
)
CLOSERS = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_encode = msgspec.json.Encoder(order="sorted").encode

DISCARD = object()  # `#_`: the next value is ignored


class _Tag(str):
    __slots__ = ()


def read_forms(data: IO[bytes], source: str) -> Iterator[Form]:
    """The values of a stream; of a single vector or list, its elements."""
    return _Reader(read_text(data, source), unwrap=True).forms()


def read_value(text: str) -> object:
    """The single value of a text; raises HistoryError, without a place, if it is anything else."""
    forms = list(_Reader(Text(text, ""), unwrap=False).forms())
    if len(forms) != 1:
        raise HistoryError("not one value")
    return forms[0].value


class _Reader:
    """A parser with a stack of open brackets; `_items` has what the innermost contains so far."""

    def __init__(self, text: Text, *, unwrap: bool) -> None:
        self._text = text
        self._unwrap = unwrap
        self._keywords_below = 2 if unwrap else 1  # deeper ones become strings
        self._begun = False
        self._wrapper = ""  # the bracket that closes the outermost vector
        self._stack: list[tuple[str, list[object]]] = []  # opener, items outside it
        self._items: list[object] = []
        self._marked = 0  # discards and tags still without their values
        self._names: dict[str, Keyword] = {}
        self._at = 0  # offset of the current word
        self._where = (1, 1)  # line and column of the form

    def forms(self) -> Iterator[Form]:
        outer = self._items
        for word in self._tokens():
            first = word[0]
            if first == "{" and len(word) > 1:
                self._take_flat_map(word)
            elif first in "[({" or word == "#{":
                self._open(word)
            elif first in "])}":
                self._close(first)
            elif first == "#" and not word.startswith("##"):
                self._mark(word)
            elif first != ";":
                self._items.append(self._atom(word, first))
                if not self._stack:
                    self._begin()
            if outer and not self._stack and self._complete():
                yield from self._finished()

    # --- tokens ------------------------------------------------------------------------------

    def _tokens(self) -> Iterator[str]:
        for match in TOKEN.finditer(self._text.text):
            word = match[1]
            if word is None:  # blanks up to the end
                break
            self._at = match.start(1)
            yield word
        self._end()

    def _end(self) -> None:
        end = len(self._text.text)
        if self._stack:
            raise self._text.error(f"the file ends inside a `{self._stack[-1][0]}`", end)
        if self._wrapper:
            raise self._text.error("the file ends inside a vector", end)
        if self._marked and not self._complete():
            raise self._text.error("the file ends where a value should follow", end)

    def _begin(self) -> None:
        self._begun = True
        self._where = self._text.place(self._at)

    def _error(self, reason: str) -> HistoryError:
        return self._text.error(reason, self._at)

    # --- brackets ---------------------------------------------------------------

    def _open(self, opener: str) -> None:
        if not self._stack:
            if self._may_be_the_wrapper(opener):
                self._wrapper = CLOSERS[opener]
                self._begun = True
                self._items.clear()
                self._marked = 0
                return
            self._begin()
        if len(self._stack) >= DEEPEST:
            raise self._error(f"nested deeper than {DEEPEST}")
        self._stack.append((opener, self._items))
        self._items = []

    def _may_be_the_wrapper(self, opener: str) -> bool:
        discarded = any(item is DISCARD for item in self._items)
        return self._unwrap and not self._begun and opener in "[(" and not discarded

    def _close(self, closer: str) -> None:
        if not self._stack:
            if closer != self._wrapper:
                raise self._error(f"`{closer}` closes nothing")
            self._wrapper = ""
            return
        opener, outside = self._stack[-1]
        if CLOSERS[opener] != closer:
            raise self._error(f"`{closer}` closes a `{opener}`")
        items = self._settled(self._items) if self._marked else self._items
        value = self._built(opener, items)
        self._stack.pop()
        outside.append(value)
        self._items = outside

    def _built(self, opener: str, items: list[object]) -> object:
        if opener == "#{":
            return sorted(items, key=_encode)
        if opener != "{":
            return items
        if len(items) % 2:
            raise self._error("a map in which a key has no value")
        keys = [key if isinstance(key, str) else _encode(key).decode() for key in items[::2]]
        built = dict(zip(keys, items[1::2], strict=True))
        if len(built) != len(keys):
            raise self._error("a map with the same key twice")
        return built

    def _take_flat_map(self, word: str) -> None:
        """`{:key value ...}` with plain values only."""
        entries = ENTRY.findall(word)
        if not self._stack:
            self._begin()
        if not self._stack and self._unwrap:
            built = {
                key: self._keyword(text) if text[0] == ":" else _flat_value(text)
                for key, text in entries
            }
        else:
            built = {f":{key}": _flat_value(text) for key, text in entries}
        if len(built) != len(entries):
            raise self._error("a map with the same key twice")
        self._items.append(built)

    # --- tags and discards -------------------------------------------------------------------

    def _mark(self, word: str) -> None:
        self._items.append(DISCARD if word == "#_" else _Tag(word[1:]))
        self._marked += 1
        if not self._stack and self._marked > DEEPEST:
            raise self._error("too many tags in a row")

    def _complete(self) -> bool:
        """Whether no discard or tag waits for its value, so the outermost items are finished."""
        if not self._marked:
            return True
        try:
            self._items[:] = self._settled(self._items)
        except HistoryError:
            return False
        return True

    def _settled(self, items: list[object]) -> list[object]:
        """The items after tags and discards, from the end: inner marks get their values first."""
        settled: list[object] = []
        marks = 0
        for item in reversed(items):
            if item is not DISCARD and type(item) is not _Tag:
                settled.append(item)
                continue
            marks += 1
            if not settled:
                raise self._error("a tag or a discard without a value")
            value = settled.pop()
            if item is not DISCARD:
                settled.append(_tagged(str(item), value))
        self._marked -= marks
        settled.reverse()
        return settled

    def _finished(self) -> Iterator[Form]:
        values, self._items[:] = list(self._items), []
        for value in values:
            yield Form(value, *self._where)

    # --- atoms -------------------------------------------------------------------------------

    def _atom(self, word: str, first: str) -> object:
        if first == ":":
            return self._keyword(word) if self._in_operation() else word
        try:
            if first in "0123456789+-":
                return read_number(word)
            if first == '"':
                return text(word)
            if first == "\\":
                return character(word)
        except ValueError as error:
            raise self._error(str(error)) from error
        return CONSTANTS.get(word, word)

    def _in_operation(self) -> bool:
        """Whether a keyword here is a field or value of an operation, not of a nested value."""
        depth = len(self._stack)
        return not depth or (depth < self._keywords_below and self._stack[-1][0] == "{")

    def _keyword(self, word: str) -> Keyword:
        known = self._names.get(word)
        if known is None:
            known = Keyword(word[1:])
            if len(self._names) < MANY_NAMES:
                self._names[word] = known
        return known


def _flat_value(text: str) -> object:
    if text[0] == '"':
        return text[1:-1]
    if text[0] == "[":
        return [_flat_value(each) for each in text[1:-1].replace(",", " ").split()]
    if text[0] == ":":
        return text
    return CONSTANTS[text] if text in CONSTANTS else int(text)


def _tagged(tag: str, value: object) -> object:
    is_pair = tag.endswith((".Tuple", "/tuple", ".MapEntry"))
    if is_pair and isinstance(value, list) and len(value) == 2:
        return Pair(value)
    return value
