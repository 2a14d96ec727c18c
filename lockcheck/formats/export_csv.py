"""Operations as rows of CSV, in the order of their invocations; the columns are in `csv_rows`.

What it cannot say: an empty name is the same as none, and a process that is a number the same as a
name of digits.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import msgspec

from lockcheck.formats.intervals import ANSWERED_TOKEN
from lockcheck.history import Event, History, Operation

COLUMNS = (
    "client",
    "key",
    "op",
    "start_ns",
    "end_ns",
    "outcome",
    "token",
    "value",
    "result",
    "ttl_ms",
    "node",
)
AT_ONCE = 4096  # rows
Cell = str | int | None


def csv_rows(history: History) -> Iterator[bytes]:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")  # so that both are quoted inside a cell
    writer.writerow(COLUMNS)
    for number, operation in enumerate(history.operations, 1):
        writer.writerow(_row(operation))
        if number % AT_ONCE == 0:
            yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: io.StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode()


def _row(operation: Operation) -> tuple[Cell, ...]:
    invoke, answer = operation.invoke, operation.answer
    return (
        operation.process,
        invoke.key,
        operation.f,
        operation.start_ns,
        None if answer is None else answer.time,
        None if answer is None else answer.type.value,
        _token(invoke, answer),
        _json(invoke.value),
        None if answer is None else _json(answer.value),
        invoke.ttl_ms,
        invoke.node,
    )


def _token(invoke: Event, answer: Event | None) -> int | None:
    told = answer if invoke.f in ANSWERED_TOKEN else invoke
    return told.token if told is not None else None


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value, order="sorted").decode()
