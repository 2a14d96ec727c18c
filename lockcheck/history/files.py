"""Histories as files: JSON Lines in and out, and the merge of the clients' files."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import IO

import msgspec

from lockcheck.errors import HistoryError
from lockcheck.files import opened
from lockcheck.history.event import Event, decode_event, encode_event

# No client writes a longer line: a line is one event, not a document.
LONGEST_LINE = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BYTE = re.compile(r" \(byte (\d+)\)$")
ESCAPES = re.compile(
    r"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u(?P<lone>[dD][89a-fA-F]\w\w)|\\.", re.DOTALL
)
LONE = "half of a surrogate pair, which is not a character"
CUT_OFF = "Input data was truncated"


class EventWriter:
    """Appends events, one write each. A writer that is killed loses at most its unfinished line,
    which the next writer of the file removes."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        _cut_torn_end(self._fd)

    def write(self, event: Event) -> None:
        line = encode_event(event) + b"\n"
        written = os.write(self._fd, line)
        try:
            while written < len(line):  # a disk that fills up may take only a part
                written += os.write(self._fd, line[written:])
        except OSError:
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
            raise

    def close(self) -> None:
        os.close(self._fd)


def _cut_torn_end(file: int) -> None:
    """Truncates the file after its last newline."""
    size = os.fstat(file).st_size
    whole, newline = size, -1
    while whole and newline < 0:
        begin = max(0, whole - LONGEST_LINE)
        newline = os.pread(file, whole - begin, begin).rfind(b"\n")
        whole = begin + newline + 1
    if whole < size:
        os.ftruncate(file, whole)


def write_events(path: Path, events: Iterable[Event]) -> None:
    with path.open("wb") as out:
        out.writelines(encode_event(event) + b"\n" for event in events)


@dataclass(slots=True)
class Position:
    """The line of the last event that a reader has returned."""

    line: int = 0


def read_events(
    path: Path,
    *,
    allow_torn_end: bool = False,
    place: Position | None = None,
    follow: bool = False,
) -> Iterator[Event]:
    """Yields the events of a file; `allow_torn_end` drops a last line without a newline."""
    try:
        with opened(path, follow=follow) as lines:
            yield from events_in(lines, str(path), allow_torn_end=allow_torn_end, place=place)
    except OSError as error:
        raise HistoryError(f"cannot be read: {error.strerror}", source=str(path)) from error


def events_in(
    lines: IO[bytes], source: str, *, allow_torn_end: bool = False, place: Position | None = None
) -> Iterator[Event]:
    """Yields the events of a stream of lines, one at a time."""
    place = place or Position()
    number = 0
    while line := lines.readline(LONGEST_LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        torn = not line.endswith(b"\n")
        if torn and len(line) > LONGEST_LINE:
            reason = f"longer than {LONGEST_LINE} bytes"
            raise HistoryError(reason, source=source, line=number, column=LONGEST_LINE + 1)
        if torn and allow_torn_end:
            return
        if line.strip():
            event = decode_line(line, source, number)
            place.line = number
            yield event


def decode_line(line: bytes, source: str, number: int) -> Event:
    """The event of one line; raises HistoryError with the place of the mistake."""
    try:
        return decode_event(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason, place = _located(str(error), line)
        column = len(line[:place].decode(errors="ignore")) + 1
        raise HistoryError(
            f"not an event: {reason}", source=source, line=number, column=column
        ) from error


def _located(reason: str, line: bytes) -> tuple[str, int]:
    """The reason and the byte where the line is wrong; if it is no event, its beginning."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return "not valid UTF-8", error.start
    found, end = BYTE.search(reason), len(line.rstrip())
    lone = lone_surrogate(reason, line.decode())
    if lone is not None:
        return LONE, len(line.decode()[:lone].encode())
    if reason == CUT_OFF or (found is not None and int(found[1]) >= end):
        return "it is cut off", end
    if found is not None:
        return reason[: found.start()], int(found[1])
    return reason, len(line) - len(line.lstrip())


def lone_surrogate(reason: str, text: str) -> int | None:
    """The place of the lone surrogate that made a JSON decoder fail with this reason, if any."""
    if "surrogate" not in reason and reason != CUT_OFF:  # the reason given near the end of a line
        return None
    lone = next((escape for escape in ESCAPES.finditer(text) if escape["lone"]), None)
    return None if lone is None or lone.end() == len(text.rstrip()) else lone.start()


def merge_event_files(paths: Iterable[Path]) -> Iterator[Event]:
    """Merges the files of several writers, each already in order, into one history."""
    files = [read_events(path, allow_torn_end=True) for path in paths]
    return heapq.merge(*files, key=attrgetter("time"))
