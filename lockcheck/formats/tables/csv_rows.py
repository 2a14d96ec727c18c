"""Operations as CSV, a row each: the format for logging a lock in production.

    client,key,op,start_ns,end_ns,outcome,token
    worker-7,orders,acquire,1700000000000000000,1700000000004000000,ok,33
    worker-7,orders,release,1700000000950000000,1700000000953000000,ok,
    worker-9,orders,acquire,1700000000100000000,,,

The first row names the columns, in any order; columns other than those below are ignored.

- `client`: one thread of control; it does one operation at a time.
- `key`: which lock, or object; may be empty if there is only one.
- `op`: acquire, release, renew, read, write, cas or add (lock, unlock, get, put... also work).
- `start_ns`: just before the request was sent, in nanoseconds of a clock that all clients share.
- `end_ns`: just after the answer came. Empty: none came, the operation may still take effect.
- `outcome`: `ok`, `fail` (it certainly did not happen: the lock was refused) or `info` (unknown);
  may be empty only if `end_ns` is, and then it is `info`.
- `token`: of a granted acquire its fencing token; of a read or write the token that it carried.

Optional: `token`, `value` (what to write or add; of a cas `[old, new]`), `result` (what was read),
`ttl_ms` (the lease that was asked for), `node` (where the client ran), and

- `seq`: of an answered read or write, the number that the storage gave it, in the order in which it
  served them; ignored if there was no answer. No two writes of a key have the same.
- `base`: what the written value was computed from.
- `of`: of a keeper's renewal, the client whose hold it extends. A keeper is the thread that keeps a
  lease alive, and a client of its own. If it is logged under its client's name, a renewal that
  overlaps another operation is taken for the keeper's.

A value or base is JSON, or any other text as it stands. Times are counted from the first one.

`seq` shows a write of a former holder that the storage accepted after one of the next holder
(`lockcheck explain stale-write`), and `base` an update that was overwritten unseen (`lost-update`).
Here both went wrong:

    client,key,op,start_ns,end_ns,outcome,token,value,seq,base
    a,orders,acquire,0,2000000,ok,1,,,
    b,orders,acquire,1500000000,1501000000,ok,2,,,
    b,orders,write,1513000000,1514000000,ok,2,b1,1,old
    a,orders,write,1515000000,1516000000,ok,1,a1,2,old

The `op` `lost` is a notice, not an operation: at `start_ns` the client learned that it no longer
holds the lock. That ends its hold. It is allowed at any time, also while an operation is under way;
`end_ns` is empty or the same, `outcome` may be empty:

    a,orders,lost,1400000000,,,,,,
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain
from typing import IO

from lockcheck.errors import HistoryError
from lockcheck.formats.lines import bounded, read_lines
from lockcheck.formats.source import Source
from lockcheck.formats.tables.intervals import NEEDED, OPTIONAL, Cells, Intervals
from lockcheck.formats.tables.row_events import RowEvents
from lockcheck.formats.tables.rows import Rows
from lockcheck.history.event import Event
from lockcheck.history.files import LONGEST_LINE

CHUNK = 1 << 20
CHUNK_ROWS = 4096  # of rows with quoted cells

CellLists = list[Sequence[str]]


def read_csv(data: IO[bytes], source: Source) -> Iterable[Event]:
    csv.field_size_limit(LONGEST_LINE)
    rows, table = Intervals(), _Table(data, source)
    for cells in table.cells():
        rows.take(cells)
    return RowEvents(Rows(rows, source)) if len(rows) else ()


class _Table:
    """The rows of a CSV file as cells, with the place of each for errors."""

    def __init__(self, data: IO[bytes], source: Source) -> None:
        self._data = data
        self._source = source
        self._line = 0  # the last one read
        header = next(self._rows(bounded(data)), [])
        self._width = len(header)
        self._header = self._known(header)

    def _known(self, row: list[str]) -> dict[str, int]:
        names = [name.strip().lower() for name in row]
        missing = [name for name in NEEDED if name not in names]
        if missing:
            raise self._source.error(f"its header lacks the column {', '.join(missing)}", 1)
        known = [name for name in names if name in NEEDED + OPTIONAL]
        if len(set(known)) != len(known):
            raise self._source.error("its header names a column twice", 1)
        return {name: names.index(name) for name in known}

    def cells(self) -> Iterator[Cells]:
        """Many rows at once, as long as no cell is quoted."""
        while piece := self._data.read(CHUNK):
            piece += self._data.readline(LONGEST_LINE + 1)
            columns = _plain(piece, self._width)
            if columns is None:
                yield from self._one_by_one(chain(BytesIO(piece), bounded(self._data)))
                return
            first, self._line = self._line + 1, self._line + len(columns[0])
            yield self._cells_of(columns, range(first, self._line + 1))

    def _one_by_one(self, given: Iterator[bytes]) -> Iterator[Cells]:
        rows: list[list[str]] = []
        lines: list[int] = []
        for row in self._rows(given):
            if len(row) <= max(self._header.values()):
                width = max(self._header.values()) + 1
                reason = f"a row of {len(row)} cells where {width} are needed"
                raise self._source.error(reason, self._line)
            rows.append(row)
            lines.append(self._line)
            if len(rows) == CHUNK_ROWS:
                yield self._cells_of(list(zip(*rows, strict=False)), lines)
                rows, lines = [], []
        if rows:
            yield self._cells_of(list(zip(*rows, strict=False)), lines)

    def _rows(self, given: Iterable[bytes]) -> Iterator[list[str]]:
        """The rows that are not empty."""
        before = self._line
        reader = csv.reader(read_lines(given, self._source.name, before), strict=True)
        try:
            for row in reader:
                self._line = before + reader.line_num
                if row:
                    yield row
        except csv.Error as error:
            line = max(1, before + reader.line_num)
            raise self._source.error(f"not CSV: {error}", line) from error

    def _cells_of(self, columns: CellLists, lines: Sequence[int]) -> Cells:
        def error(place: int, name: str, reason: str) -> HistoryError:
            """The column is exact if no cell before it is quoted."""
            before = columns[: self._header.get(name, 0)]
            column = 1 + sum(len(cells[place]) + 1 for cells in before)
            return self._source.error(f"{name}: {reason}", lines[place], column)

        return Cells({name: columns[at] for name, at in self._header.items()}, lines, error)


def _plain(piece: bytes, width: int) -> CellLists | None:
    """Cells, column by column; None if a row has another width than the header, or quoted cells."""
    try:
        text = piece.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
    if '"' in text or "\r" in text or len(piece) > CHUNK + LONGEST_LINE:
        return None
    text = text if text.endswith("\n") else f"{text}\n"
    rows = text.count("\n")
    cells = text.replace("\n", ",\n,").split(",")  # each row ends with a cell of its own
    if len(cells) != rows * (width + 1) + 1 or cells[width :: width + 1].count("\n") != rows:
        return None
    return [cells[at : -1 : width + 1] for at in range(width)]
