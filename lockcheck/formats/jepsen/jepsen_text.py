"""Jepsen's `history.txt`, and the same lines in the log of a test.

    3	:invoke	:write	2
    3	:ok	:write	2
    4	:fail	:cas	[3 0]	:value-mismatch
    :nemesis	:info	:start	nil

    INFO  jepsen.util - 3	:invoke	:write	2
    INFO [2018-06-07 11:48:23,015] jepsen worker 3 - jepsen.util 3	:invoke	:write	2

Columns are separated by tabs (or blanks): process, type, operation, value, and perhaps an error.
There are no times; the order of the lines is used. In a log, all other lines are ignored.

A process that is a number or a name (`3`, `worker-3`, `"worker 3"`) is a client; `nemesis` and
every keyword is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from lockcheck.errors import HistoryError
from lockcheck.formats.jepsen.edn import Keyword, read_value
from lockcheck.formats.jepsen.jepsen_edn import events_of_jepsen
from lockcheck.formats.jepsen.jepsen_op import JepsenOp, process_named
from lockcheck.formats.lines import bounded, read_lines
from lockcheck.formats.names import our_f
from lockcheck.formats.source import Source
from lockcheck.history.event import Event, EventType

OPERATION = re.compile(
    r"\s*+(?P<process>\"[^\"\t\r\n]++\"|\S++)\s++:?(?P<type>invoke|ok|fail|info)\s++(?P<f>\S++)"
    r"(?:[ \t]++(?P<value>[^\t\r\n]*+)(?:\t(?P<error>[^\r\n]*+))?+)?+\s*+"
)
LOGGER = re.compile(r"\bjepsen\.util\b(?:\s+-)?\s+")
MEANT_AS_OPERATION = re.compile(
    r"(?:\d+|:[\w-]+)\s+:\S+\s|(?:\"[^\"\t\r\n]+\"|[^\s:]\S*)\s+:(?:invoke|ok|fail|info)\s"
)
MANY_VALUES = 10_000


def read_jepsen_text(data: IO[bytes], source: Source) -> Iterator[Event]:
    return events_of_jepsen(_Reader(source).ops(_numbered(data, source)), source)


def read_log(data: IO[bytes], source: Source) -> Iterator[Event]:
    return events_of_jepsen(_Reader(source).ops(_logged_operations(data, source)), source)


OperationLine = tuple[int, int, str]  # line number, column of the operation, its text


def _numbered(data: IO[bytes], source: Source) -> Iterator[OperationLine]:
    for number, line in enumerate(read_lines(bounded(data), source.name), 1):
        if line.strip():
            yield number, 1, line


def _logged_operations(data: IO[bytes], source: Source) -> Iterator[OperationLine]:
    for number, line in enumerate(read_lines(bounded(data), source.name), 1):
        logger = LOGGER.search(line)
        if logger and MEANT_AS_OPERATION.match(line, logger.end()):
            yield number, logger.end() + 1, line[logger.end() :]


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._values: dict[str, object] = {"nil": None, "": None}

    def ops(self, lines: Iterator[OperationLine]) -> Iterator[JepsenOp]:
        for number, column, line in lines:
            found = OPERATION.fullmatch(line)
            if found is None:
                reason = "not an operation: process, type, operation and value"
                raise self._source.error(reason, number, column)
            process, kind, f, text, error = found.groups()
            value = self._value(text or "", number, column + found.start("value"))
            yield JepsenOp(
                number,
                column,
                self._process(process, number, column),
                EventType(kind),
                our_f(f.removeprefix(":")),
                value,
                error=error or None,
            )

    def _process(self, word: str, line: int, column: int) -> int | str:
        try:
            return process_named(word.strip('"'))
        except ValueError as error:
            raise self._source.error(str(error), line, column) from error

    def _value(self, text: str, line: int, column: int) -> object:
        known = self._values.get(text, self)
        if known is not self:
            return known
        value = self._parsed(text.strip(), line, column)
        if len(self._values) < MANY_VALUES:
            self._values[text] = value
        return value

    def _parsed(self, text: str, line: int, column: int) -> object:
        if not text:
            return None
        try:
            value = read_value(text)
        except HistoryError as error:
            place = column + (error.column or 1) - 1
            raise self._source.error(error.reason, line, place) from error
        return f":{value}" if type(value) is Keyword else value
