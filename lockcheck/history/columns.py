"""Reads a history in JSON Lines directly into columns, with the compiled reader if there is one.

The reader refuses histories that it is not sure of: those are read event by event.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lockcheck.history.table import (
    NOTHING,
    TYPES,
    Bytes,
    Codes,
    Ints,
    Symbols,
    Table,
    blind_by_value,
    types_of,
)
from lockcheck.native import core

PIECE = 1 << 20
# The compiled reader's columns by number: first those of the table, then these.
EXTRA_COLUMNS = (("node", np.int32), ("invoked_at", np.int64), ("answered_at", np.int64))
SPECIAL_AT, SEEN_LAST, SYMBOL_AT, ODD_SYMBOL, NUMBERED, NUMBER, BASED, BASE = range(15, 23)
RARE = ("argument", "second", "result", "ttl_ms", "node")  # columns that may be empty
NOT_READ = ("blind", "unsaid", "shared", "turn")  # columns that the compiled reader does not have
VALUES = ("argument", "second", "result")
LEDGER_VALUES = ("value", "base")


@dataclass(frozen=True, slots=True)
class LedgerColumns:
    """The storage's ledger, in the order of its lines: see `LedgerEntry`."""

    at: Ints  # offsets in the file
    f: Bytes  # an Op
    outcome: Bytes
    seq: Ints
    of: Codes
    key: Codes
    value: Codes
    base: Codes
    why: Codes


LEDGER = types_of(LedgerColumns)


@dataclass(frozen=True, slots=True)
class Columns:
    """All operations, and where in the file the other events are."""

    table: Table
    node: Codes  # a symbol, or NOTHING if the operation names no node
    invoked_at: Ints  # offsets of the lines in the file; -1: never answered
    answered_at: Ints
    special_at: Ints  # lines that are neither a client's operation nor a ledger entry
    seen_last: Ints  # by the process's symbol: the time of its last event
    numbered: Ints  # rows of reads and writes that the storage numbered, with their numbers
    number: Ints
    based: Ints  # rows with a base, in their order, and the bases
    base: Codes
    ledger: LedgerColumns
    has_foreign_owners: bool  # operations other than renewals concern another process's hold
    began_ns: int  # time 0 by the log's clock, if that counts from 1970; else 0
    end_ns: int
    events: int


def read_columns(
    lines: IO[bytes], on_bytes: Callable[[int], object] | None = None
) -> Columns | None:
    """The columns of a history; None without a compiled reader, or if it refuses the history."""
    library = core()
    if library is None:
        return None
    reader = _Reader(library)
    if not reader.feed_all(lines, on_bytes):
        return None
    try:
        return reader.columns()
    except msgspec.DecodeError:  # a number that is out of range: its line is named event by event
        return None


class _Reader:
    """Owns the compiled reader's memory; every column that it returned keeps it alive."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._handle = ctypes.c_void_p(self._call("new", ctypes.c_void_p))
        if not self._handle:
            raise MemoryError

    def __del__(self) -> None:
        self._call("free", None, self._handle)

    def _call(self, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(self._library, f"lockcheck_reader_{name}")
        function.restype = result
        return function(*arguments)

    def feed_all(self, lines: IO[bytes], on_bytes: Callable[[int], object] | None) -> bool:
        """Reads all lines; False if the compiled reader refused one."""
        rest, ended = b"", False
        while not ended:
            piece = lines.read(PIECE)
            ended = not piece
            whole = rest + piece
            length = ctypes.c_int64(len(whole))
            taken = self._call("feed", ctypes.c_int64, self._handle, whole, length, int(ended))
            if taken < 0:
                return False
            rest = whole[taken:]
            if on_bytes is not None:
                on_bytes(len(piece))
        return True

    def columns(self) -> Columns:
        symbols = _ReaderSymbols(self)
        names = [*((n, TYPES[n]) for n in TYPES if n not in NOT_READ), *EXTRA_COLUMNS]
        read = {name: self.column(which, kind) for which, (name, kind) in enumerate(names)}
        for name in RARE:
            if not len(read[name]):
                read[name] = np.broadcast_to(np.int32(NOTHING), len(read["f"]))
        if not len(read["owner"]):
            read["owner"] = read["process"]
        ledger = {
            name: self.column(which, kind)
            for which, (name, kind) in enumerate(LEDGER.items(), BASE + 1)
        }
        base = self.column(BASE, np.int32)
        values = [*(read[name] for name in VALUES), *(ledger[name] for name in LEDGER_VALUES), base]
        self._make_canonical(symbols, values)
        read["blind"] = blind_by_value(read["f"], read["result"], symbols)
        read["unsaid"] = read["shared"] = np.broadcast_to(np.False_, len(read["f"]))
        read["turn"] = np.broadcast_to(np.int32(NOTHING), len(read["f"]))
        extra = {name: read.pop(name) for name, _ in EXTRA_COLUMNS}
        return Columns(
            table=Table(**read, symbols=symbols),
            **extra,
            special_at=self.column(SPECIAL_AT, np.int64),
            seen_last=self.column(SEEN_LAST, np.int64),
            numbered=self.column(NUMBERED, np.int64),
            number=self.column(NUMBER, np.int64),
            based=self.column(BASED, np.int64),
            base=base,
            ledger=LedgerColumns(**ledger),
            has_foreign_owners=bool(self._call("has_foreign_owners", ctypes.c_int32, self._handle)),
            began_ns=self._call("began", ctypes.c_int64, self._handle),
            end_ns=self._call("time", ctypes.c_int64, self._handle),
            events=self._call("events", ctypes.c_int64, self._handle),
        )

    def _make_canonical(self, symbols: _ReaderSymbols, columns: list[Codes]) -> None:
        """Gives equal values the same symbol: `[1, 2]` and `[1,2]` are equal."""
        odd = np.unique(self.column(ODD_SYMBOL, np.int32)).tolist()
        if not odd:
            return
        same = {number: symbols.number(symbols.value(number)) for number in odd}
        renumbered = np.arange(len(symbols), dtype=np.int32)
        renumbered[list(same)] = list(same.values())
        for column in [column for column in columns if column.flags.writeable]:
            column[:] = np.where(column == NOTHING, NOTHING, renumbered[column])

    def column(self, which: int, kind: Any) -> NDArray[Any]:
        """A column without a copy: the array refers to the reader's memory, and to the reader."""
        length = self._call("length", ctypes.c_int64, self._handle, which)
        if length == 0:
            return np.zeros(0, kind)
        at = self._call("column", ctypes.c_void_p, self._handle, which)
        memory = (ctypes.c_char * (length * np.dtype(kind).itemsize)).from_address(at)
        memory.owner = self
        return np.frombuffer(memory, kind)

    def number(self, text: bytes) -> int:
        length = ctypes.c_int64(len(text))
        number: int = self._call("number", ctypes.c_int32, self._handle, text, length)
        if number < 0:
            raise MemoryError
        return number

    def text(self, number: int) -> bytes:
        length = ctypes.c_int64()
        at = self._call(
            "text", ctypes.c_void_p, self._handle, ctypes.c_int32(number), ctypes.byref(length)
        )
        return ctypes.string_at(at, length.value)


class _ReaderSymbols(Symbols):
    """Symbols whose texts stay in the reader's memory: there can be millions of them."""

    def __init__(self, reader: _Reader) -> None:
        super().__init__()
        self._reader = reader

    def number(self, value: object) -> int:
        if value is None:
            return NOTHING
        return self._reader.number(msgspec.json.encode(value, order="sorted"))

    def text(self, number: int) -> bytes:
        return self._reader.text(number)

    def __len__(self) -> int:
        return len(self._reader.column(SYMBOL_AT, np.int64))
