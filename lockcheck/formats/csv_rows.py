"""Operations as CSV, a row each: the format to log a lock in production with.

    client,key,op,start_ns,end_ns,outcome,token
    worker-7,orders,acquire,1700000000000000000,1700000000004000000,ok,33
    worker-7,orders,release,1700000000950000000,1700000000953000000,ok,
    worker-9,orders,acquire,1700000000100000000,,,

The first row names the columns, in any order; others than those below are passed over.

- `client`: who does it, one thread of control. It does one operation at a time.
- `key`: which lock, or object; may be empty where there is one only.
- `op`: acquire, release, renew, read, write, cas or add (lock, unlock, get, put... are understood).
- `start_ns`: just before the request was sent, in nanoseconds of a clock that all clients share.
- `end_ns`: just after the answer came. Empty: none came, the operation may still take effect.
- `outcome`: `ok`, `fail` (it certainly did not happen: the lock was refused) or `info` (nobody
  knows); may be empty only where `end_ns` is, and is `info` then.
- `token`: of a granted acquire its fencing token; of a read or write the one that was shown.

May be missing: `token`, `value` (what to write or add; of a cas `[old, new]`), `result` (what was
read), `ttl_ms` (the lease that was asked for), `node` (where the client ran), and

- `seq`: of an answered read or write the number that the storage gave it, in the order in which it
  served them; of one that nobody answered it is passed over. No two writes of a key have the same.
- `base`: what the written value was computed from.
- `of`: of a renewal the client whose hold it extends, where somebody else renews: a keeper, the
  thread that keeps a lease alive. A keeper is a client of its own. Where it is logged under its
  client's name, a renewal that is under way together with something else is taken for the keeper's.

A value, and a base, is JSON, or a text that is no JSON. Times are counted from the first one.

With `seq` a write of a former holder is found that the storage took after one of the next holder
(`lockcheck explain stale-write`), and with `base` an update that was overwritten unseen
(`lost-update`). Here both went wrong:

    client,key,op,start_ns,end_ns,outcome,token,value,seq,base
    a,orders,acquire,0,2000000,ok,1,,,
    b,orders,acquire,1500000000,1501000000,ok,2,,,
    b,orders,write,1513000000,1514000000,ok,2,b1,1,old
    a,orders,write,1515000000,1516000000,ok,1,a1,2,old

One `op` is no operation: `lost` says that at `start_ns` the client was told, or found out, that it
holds the lock no longer. It ends the client's hold. It is allowed at any time, also while an
operation is under way; `end_ns` is empty or the same, `outcome` may be empty:

    a,orders,lost,1400000000,,,,,,
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import IO, TypeVar

from lockcheck.errors import HistoryError
from lockcheck.formats.cells import (
    LARGEST_NUMBER,
    NO_PAIR,
    NO_RENEWAL,
    NOT_LOST,
    is_pair,
    json_or_text,
    maybe_number,
    number,
    ttl_ms_of,
)
from lockcheck.formats.intervals import Intervals, events_of_intervals
from lockcheck.formats.lines import read_lines
from lockcheck.formats.names import our_row_f
from lockcheck.formats.source import Source
from lockcheck.history.event import Event, EventType, F, Notice
from lockcheck.history.files import LONGEST_LINE

NEEDED = ("client", "key", "op", "start_ns", "end_ns", "outcome")
OPTIONAL = ("token", "value", "result", "ttl_ms", "node", "seq", "base", "of")
OUTCOMES = {
    "ok": EventType.OK,
    "fail": EventType.FAIL,
    "info": EventType.INFO,
    "": EventType.INFO,
}
AT_ONCE = 4096  # rows
T = TypeVar("T")


def read_csv(data: IO[bytes], source: Source) -> Iterator[Event]:
    rows = Intervals()
    csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(read_lines(data, source.name), strict=True)
    try:
        header = _header(next(reader, []), source)
        for lines, batch in _batches(reader):
            _Batch(source, header, lines, batch).add_to(rows)
    except csv.Error as error:
        raise source.error(f"not CSV: {error}", max(1, reader.line_num)) from error
    source.counts_from(min(rows.starts, default=0))
    return events_of_intervals(rows, source.name)


def _header(row: list[str], source: Source) -> dict[str, int]:
    names = [name.strip().lower() for name in row]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise source.error(f"its first row names no column {', '.join(missing)}", 1)
    known = [name for name in names if name in NEEDED + OPTIONAL]
    if len(set(known)) != len(known):
        raise source.error("its first row names a column twice", 1)
    return {name: names.index(name) for name in known}


Rows = list[list[str]]


def _batches(reader: Iterator[list[str]]) -> Iterator[tuple[list[int], Rows]]:
    lines: list[int] = []
    batch: Rows = []
    for row in reader:
        if row:
            batch.append(row)
            lines.append(reader.line_num)  # type: ignore[attr-defined]
        if len(batch) == AT_ONCE:
            yield lines, batch
            lines, batch = [], []
    if batch:
        yield lines, batch


class _Batch:
    """Some rows, column after column: a function called for each cell would take the longest."""

    def __init__(
        self, source: Source, header: dict[str, int], lines: list[int], rows: Rows
    ) -> None:
        self._source = source
        self._header = header
        self._lines = lines
        self._rows = rows
        width = max(header.values()) + 1
        if min(map(len, rows)) < width:
            place = next(place for place, row in enumerate(rows) if len(row) < width)
            reason = f"a row of {len(rows[place])} cells where {width} are needed"
            raise source.error(reason, lines[place])
        self._columns = list(zip(*rows, strict=False))
        ops = self._cells("op")
        self._notices = {place for place, op in enumerate(ops) if our_row_f(op) == Notice.LOST}

    def add_to(self, rows: Intervals) -> None:
        rows.lines += self._lines
        rows.clients += self._converted("client", _client)
        rows.keys += self._converted("key", _name)
        rows.fs += self._converted("op", _f)
        rows.starts += self._numbers("start_ns")
        rows.ends += self._ends()
        rows.outcomes += self._outcomes()
        rows.tokens += self._maybe_numbers("token")
        rows.values += self._values()
        rows.results += self._converted("result", json_or_text)
        rows.nodes += self._converted("node", _name)
        rows.ttls_ms += self._converted("ttl_ms", ttl_ms_of)
        rows.seqs += self._maybe_numbers("seq")
        rows.bases += self._converted("base", json_or_text)
        rows.ofs += self._owners()

    def _cells(self, name: str) -> Sequence[str]:
        return self._columns[self._header[name]]

    def _converted(self, name: str, convert: Callable[[str], T]) -> list[T]:
        if name not in self._header:
            return [convert("")] * len(self._lines)
        try:
            return list(map(convert, self._cells(name)))
        except ValueError as error:
            found: ValueError = error
        for place, cell in enumerate(self._cells(name)):
            try:
                convert(cell)
            except ValueError as error:
                raise self._error(place, name, str(error)) from error
        raise found

    def _numbers(self, name: str) -> list[int]:
        cells = self._cells(name)
        signs = "".join(cells)
        if not signs.isascii() or not signs.replace("-", "").replace(" ", "").isdigit():
            return self._converted(name, number)  # finds the one that is none
        try:
            numbers = list(map(int, cells))
        except ValueError:
            return self._converted(name, number)
        if max(numbers) > LARGEST_NUMBER or min(numbers) < -LARGEST_NUMBER:
            return self._converted(name, number)
        return numbers

    def _maybe_numbers(self, name: str) -> list[int | None]:
        if name not in self._header:
            return list(repeat(None, len(self._lines)))
        cells = self._cells(name)
        if all(cells):
            return [*self._numbers(name)]
        return self._converted(name, maybe_number)

    def _ends(self) -> list[int | None]:
        ends = self._maybe_numbers("end_ns")
        for place in self._notices:
            if ends[place] not in (None, number(self._cells("start_ns")[place])):
                raise self._error(place, "end_ns", "a notice has one time only, when it came")
            ends[place] = None
        return ends

    def _outcomes(self) -> list[EventType]:
        outcomes = self._converted("outcome", _outcome)
        ends, told = self._cells("end_ns"), self._cells("outcome")
        for place in self._notices:
            if outcomes[place] is EventType.FAIL:
                raise self._error(place, "outcome", NOT_LOST)
        for place, (end, outcome) in enumerate(zip(ends, told, strict=True)):
            if place in self._notices:
                continue
            if end and not outcome:
                raise self._error(place, "outcome", "an answer without its outcome")
            if not end and outcomes[place] is not EventType.INFO:
                raise self._error(place, "end_ns", "an answer without its time")
        return outcomes

    def _owners(self) -> list[str | None]:
        owners = self._converted("of", _name)
        for place, owner in enumerate(owners):
            if owner is not None and our_row_f(self._cells("op")[place]) != F.RENEW:
                raise self._error(place, "of", NO_RENEWAL)
        return owners

    def _values(self) -> list[object]:
        values = self._converted("value", json_or_text)
        for place, op in enumerate(self._cells("op")):
            if our_row_f(op) == F.CAS and not is_pair(values[place]):
                raise self._error(place, "value", NO_PAIR)
        return values

    def _error(self, place: int, name: str, reason: str) -> HistoryError:
        """The column is exact where no cell before it is quoted."""
        before = self._rows[place][: self._header.get(name, 0)]
        column = 1 + sum(len(cell) + 1 for cell in before)
        return self._source.error(f"{name}: {reason}", self._lines[place], column)


def _client(text: str) -> str:
    if not text:
        raise ValueError("an operation of nobody")
    return text


def _name(text: str) -> str | None:
    return text or None


def _f(text: str) -> str:
    if not text:
        raise ValueError("no operation")
    return our_row_f(text)


def _outcome(text: str) -> EventType:
    outcome = OUTCOMES.get(text) or OUTCOMES.get(text.strip().lower())
    if outcome is None:
        raise ValueError(f"neither ok, fail nor info: {text[:40]!r}")
    return outcome
