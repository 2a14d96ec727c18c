"""Operations as rows of CSV, in the order of their invocations; docs/logs.md has the columns.

The notices that a client lost its lock are rows, too. An empty name is read back as none, and a
process `"7"` as the number 7. The storage's ledger is left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from lockcheck.formats.names import is_lost
from lockcheck.formats.tables.cells import Released
from lockcheck.formats.tables.intervals import ANSWERED_TOKEN, COLUMNS
from lockcheck.history import Event, EventType, F, History, Notice, Operation
from lockcheck.history.event import NEMESIS, STORAGE, Refusal
from lockcheck.history.older import saying_blind

CHUNK_ROWS = 4096
Cell = str | int | None


def csv_rows(history: History) -> Iterator[bytes]:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")  # quotes both inside a cell
    writer.writerow(COLUMNS)
    for number, row in enumerate(_rows(history), 1):
        writer.writerow(row)
        if number % CHUNK_ROWS == 0:
            yield _drained(buffer)
    yield _drained(buffer)


def _rows(history: History) -> Iterator[tuple[Cell, ...]]:
    """In the order of the history: that is the order of events with equal times."""
    notices = lost_notices(history)
    if not notices:
        yield from map(_row, history.operations)
        return
    rows: dict[int, Callable[[], tuple[Cell, ...]]] = {}
    rows |= {id(each.invoke): partial(_row, each) for each in history.operations}
    rows |= {id(each): partial(_notice, each) for each in notices}
    for event in history.events:
        if id(event) in rows:
            yield rows[id(event)]()


def lost_notices(history: History) -> list[Event]:
    """The notices that a client lost its lock."""
    lost = [event for event in history.events if _may_be_notice(event)]
    answers = {id(each.answer) for each in history.operations if each.f == Notice.LOST and lost}
    return [event for event in lost if id(event) not in answers]


def _may_be_notice(event: Event) -> bool:
    of_client = event.process not in (NEMESIS, STORAGE)
    return event.f == Notice.LOST and event.type is EventType.INFO and of_client


def _drained(buffer: io.StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode()


def _row(operation: Operation) -> tuple[Cell, ...]:
    invoke, answer = operation.invoke, operation.answer
    return (
        operation.process,
        invoke.key,
        f"{operation.f} operation" if is_lost(operation.f) else operation.f,
        operation.start_ns,
        None if answer is None else answer.time,
        None if answer is None else answer.type.value,
        _token(invoke, answer),
        _json(invoke.value),
        None if answer is None else _json(result_of(answer)),
        invoke.ttl_ms,
        invoke.node,
        None if answer is None else answer.seq,
        _json(invoke.base),
        invoke.of if operation.f == F.RENEW else None,
        "true" if invoke.shared else None,
        Released.UNSAID.value if operation.unsaid else None,
        _refused(operation),
    )


def _refused(operation: Operation) -> str | None:
    """An error without a word on the lock is none of `held`, which an empty cell means."""
    answer = operation.answer
    if answer is None or not operation.failed or not (answer.refused or answer.error):
        return None
    return (operation.refusal or Refusal.UNAVAILABLE).value


def result_of(answer: Event) -> object:
    """Its value, in which a release says that it did not check the owner: no field does."""
    return saying_blind(answer.value) if answer.blind else answer.value


def _notice(event: Event) -> tuple[Cell, ...]:
    first = (event.process, event.key, event.f, event.time, None, None, event.token)
    value, base = _json(event.value), _json(event.base)
    return (*first, value, None, event.ttl_ms, event.node, None, base, None, None, None, None)


def _token(invoke: Event, answer: Event | None) -> int | None:
    event = answer if invoke.f in ANSWERED_TOKEN else invoke
    return None if event is None else event.token


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value, order="sorted").decode()
