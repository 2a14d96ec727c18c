"""Histories of other tools: every format that can be read.

A format is one file, and one entry here. A reader gets bytes and yields our events in the order of
their times. Nothing that the file contains is ever looked up or run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import IO

import msgspec

from lockcheck.errors import UserError
from lockcheck.formats.jepsen.jepsen_edn import read_edn
from lockcheck.formats.jepsen.jepsen_json import read_json
from lockcheck.formats.jepsen.jepsen_text import (
    LOGGER,
    MEANT_AS_OPERATION,
    OPERATION,
    read_jepsen_text,
    read_log,
)
from lockcheck.formats.opening import ByteStream, name_of, opened, plain_name
from lockcheck.formats.read_options import ReadOptions, with_terms
from lockcheck.formats.source import Source
from lockcheck.formats.tables.csv_rows import ALSO, read_csv
from lockcheck.formats.tables.intervals import NEEDED
from lockcheck.formats.tables.otlp import read_otlp
from lockcheck.history import Event, History
from lockcheck.history.event import SINCE_1970_NS, Notice, earlier
from lockcheck.history.files import BYTE_ORDER_MARK, events_in

__all__ = [
    "FORMATS",
    "Format",
    "ReadOptions",
    "Reading",
    "format_of",
    "read_any",
    "reading",
    "with_user_terms",
]

HEAD_BYTES = 1 << 16  # what a format is recognized by

Reader = Callable[[IO[bytes], Source], Iterable[Event]]


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    meaning: str
    read: Reader
    looks_like: Callable[[str], bool]  # takes the beginning of the text
    endings: tuple[str, ...] = ()
    partial: bool = False  # a production log: it may begin at any time


@dataclass(frozen=True, slots=True)
class Reading:
    """A history that is being read; `events` can be iterated once."""

    source: Source
    format: Format
    events: Iterator[Event]


def _read_jsonl(data: IO[bytes], source: Source) -> Iterator[Event]:
    return events_in(data, source.name, place=source.place)


# --- how each format begins ------------------------------------------------------------------

EDN_BEGINS = re.compile(r"(?:[\s,]++|;[^\n]*+\n|#_)*+[\[(]?\s*+(?:#[\w./-]++\s*+)?\{[\s,]*+:")
JSON_ARRAY_BEGINS = re.compile(r"\s*\[\s*\{\s*\"")


def _first_line(head: str) -> str:
    return head.lstrip().partition("\n")[0]


def _first_object(head: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(_first_line(head), type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return {}


def _is_ours(head: str) -> bool:
    first = _first_object(head)
    return first.get("f") == Notice.TERMS or ("time" in first and "index" not in first)


def _is_jepsen_json(head: str) -> bool:
    return bool(JSON_ARRAY_BEGINS.match(head)) or {"process", "type"} <= _first_object(head).keys()


def _is_log(head: str) -> bool:
    return any(MEANT_AS_OPERATION.match(head, found.end()) for found in LOGGER.finditer(head))


def _is_csv(head: str) -> bool:
    names = {name.strip().strip('"').lower() for name in _first_line(head).split(",")}
    return len({ALSO.get(name, name) for name in names} & set(NEEDED)) > len(NEEDED) // 2


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format(
            "otlp",
            "OpenTelemetry's spans in JSON, as its collector exports them to files",
            read_otlp,
            lambda head: '"resourceSpans"' in head,
            partial=True,
        ),
        Format("jsonl", "lockcheck's own JSON Lines", _read_jsonl, _is_ours, (".jsonl",)),
        Format(
            "jepsen-json",
            "a Jepsen history as JSON, one object an operation",
            read_json,
            _is_jepsen_json,
            (".json",),
        ),
        Format(
            "edn",
            "Jepsen's history.edn",
            read_edn,
            lambda head: bool(EDN_BEGINS.match(head)),
            (".edn",),
        ),
        Format("log", "the operations in the log of a Jepsen test", read_log, _is_log, (".log",)),
        Format(
            "txt",
            "Jepsen's history.txt",
            read_jepsen_text,
            lambda head: bool(OPERATION.fullmatch(_first_line(head))),
            (".txt",),
        ),
        Format("csv", "a row for each operation", read_csv, _is_csv, (".csv",), partial=True),
    )
}


def guessed(head: bytes, name: str) -> Format:
    """The format that the content looks like, or else the one that the name's ending suggests."""
    text = head.decode(errors="replace").removeprefix("\ufeff")
    for each in FORMATS.values():
        if each.looks_like(text):
            return each
    for each in FORMATS.values():
        if plain_name(name).endswith(each.endings):
            return each
    raise UserError(
        f"{name} is in no format that lockcheck recognizes",
        cure=f"name it with --format: {', '.join(FORMATS)}",
    )


def format_of(data: ByteStream, source: Source) -> Format:
    """The format that was asked for, or else the one that the content looks like."""
    asked = source.options.format
    if asked and asked not in FORMATS:
        raise UserError(f"unknown format {asked!r}", cure=f"choose from: {', '.join(FORMATS)}")
    head = data.peek(HEAD_BYTES)
    if len(head) < HEAD_BYTES and not head.removeprefix(BYTE_ORDER_MARK).strip():
        raise source.error("it is empty")
    return FORMATS[asked] if asked else guessed(head, source.name)


def with_user_terms(events: Iterable[Event], form: Format, source: Source) -> Iterator[Event]:
    """The events counted from the first one, with the terms that the user gave in front."""
    options = replace(source.options, partial=form.partial)
    counted = _counted_from_the_first(iter(events), source)
    return with_terms(counted, options, lambda: source.began_ns)


def _counted_from_the_first(events: Iterator[Event], source: Source) -> Iterator[Event]:
    """The events with times since the first one, if theirs count from 1970."""
    first = next(events, None)
    if first is None:
        return iter(())
    source.counts_from(first.time)
    if first.time < SINCE_1970_NS:
        return chain([first], events)
    return (earlier(event, first.time) for event in chain([first], events))


@contextmanager
def reading(given: str, options: ReadOptions | None = None) -> Iterator[Reading]:
    """Opens a history: `given` is a file, packed or not, or `-` for standard input."""
    source = Source(name_of(given), options or ReadOptions())
    with opened(given) as data:
        form = format_of(data, source)
        yield Reading(source, form, with_user_terms(form.read(data, source), form, source))


def read_any(given: str, options: ReadOptions | None = None) -> tuple[History, Reading]:
    with reading(given, options) as found:
        source = found.source
        return History.of(found.events, source=source.name, place=source.place), found
