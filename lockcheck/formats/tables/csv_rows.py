"""Operations as CSV, a row each: the format for logging a lock in production (see docs/logs.md).

The first row names the columns, in any order; those that `intervals` does not know are ignored,
and noted.
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

ALSO = {"start": "start_ns", "end": "end_ns"}

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
        names = [ALSO.get(name.strip().lower(), name.strip().lower()) for name in row]
        missing = [name for name in NEEDED if name not in names]
        if missing:
            raise self._source.error(f"its header lacks the column {', '.join(missing)}", 1)
        known = [name for name in names if name in NEEDED + OPTIONAL]
        if len(set(known)) != len(known):
            raise self._source.error("its header names a column twice", 1)
        strange = [name for name in names if name not in known]
        if strange:
            listed = ", ".join(repr(name) for name in dict.fromkeys(strange))
            self._source.notes.append(
                f"columns that lockcheck does not know were ignored: {listed}"
            )
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
