"""A seal at the end of a run's history: whatever is cut off, added or changed later is noticed.

The second line announces the seal, so that a truncated history is not mistaken for a shorter one.
The seal is no signature: it protects against damage, not against intent.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO

import msgspec
from msgspec.structs import replace

from lockcheck.errors import HistoryError
from lockcheck.history.event import RUN, Event, EventType, Notice, decode_event, encode_event
from lockcheck.history.files import LONGEST_LINE

CHUNK = 1 << 20
LONGEST_SEAL = 1 << 20
CURE = "take it from where it was copied, or run again"


class Seal(msgspec.Struct, frozen=True):
    """The value of the last line."""

    sha256: str  # of all lines before it, and of this one without it
    events: dict[str, int]  # by process
    facts: str  # the digest of the other facts in the run's folder


def sealed(events: Iterable[Event], facts: bytes) -> Iterator[bytes]:
    """The lines of a history, the terms first, with the announcement and the seal."""
    digest, counts, time = sha256(), Counter[str](), 0
    for event in _with_announcement(events):
        line = encode_event(event) + b"\n"
        digest.update(line)
        counts[str(event.process)] += 1
        time = event.time
        yield line
    unsigned = Seal("", dict(counts), digest_of(facts))
    digest.update(_line(time, unsigned))
    yield _line(time, replace(unsigned, sha256=digest.hexdigest())) + b"\n"


def digest_of(facts: bytes) -> str:
    return sha256(facts).hexdigest()


def _with_announcement(events: Iterable[Event]) -> Iterator[Event]:
    """The events with the announcement of the seal as the second."""
    for number, event in enumerate(events):
        yield event
        if number == 0:
            yield _mark(event.time, None)


def _line(time: int, seal: Seal) -> bytes:
    return encode_event(_mark(time, msgspec.to_builtins(seal)))


def _mark(time: int, value: object) -> Event:
    return Event(time=time, process=RUN, type=EventType.INFO, f=Notice.SEALED, value=value)


def seal_of(path: Path, source: str) -> Seal | None:
    """The seal of a history; None if it never had one. Raises HistoryError if it is damaged."""
    with path.open("rb") as lines:
        first, second = (_event(lines.readline(LONGEST_LINE)) for _ in range(2))
        announced = any(map(_is_mark, (first, second)))
        last, begin = _last_line(lines)
        event = _event(last)
        if event is None or not _is_mark(event) or event.value is None:
            if announced:
                raise HistoryError("its end is missing: it was cut off", source=source, cure=CURE)
            return None
        seal = _value(event, source)
        unsigned = _line(event.time, replace(seal, sha256=""))
        whole = last == _line(event.time, seal) and _digest(lines, begin, unsigned) == seal.sha256
        if not whole:
            raise HistoryError(_damage(lines, begin, seal), source=source, cure=CURE)
        return seal


def _is_mark(event: Event | None) -> bool:
    return event is not None and event.process == RUN and event.f == Notice.SEALED


def _event(line: bytes) -> Event | None:
    try:
        return decode_event(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _value(event: Event, source: str) -> Seal:
    try:
        return msgspec.convert(event.value, Seal)
    except msgspec.ValidationError as error:
        raise HistoryError("its seal cannot be read", source=source, cure=CURE) from error


def _last_line(lines: IO[bytes]) -> tuple[bytes, int]:
    """The last line and its offset."""
    size = lines.seek(0, os.SEEK_END)
    begin = lines.seek(max(0, size - LONGEST_SEAL))
    end = lines.read().rstrip(b"\n")
    newline = end.rfind(b"\n")
    return end[newline + 1 :], begin + newline + 1


def _digest(lines: IO[bytes], length: int, end: bytes) -> str:
    """The digest of the first `length` bytes followed by `end`."""
    digest = sha256()
    lines.seek(0)
    while length and (piece := lines.read(min(CHUNK, length))):
        digest.update(piece)
        length -= len(piece)
    digest.update(end)
    return digest.hexdigest()


def _damage(lines: IO[bytes], length: int, seal: Seal) -> str:
    """What is wrong with a history that does not match its seal."""
    lines.seek(0)
    there: Counter[str] = Counter()
    while lines.tell() < length:
        event = _event(lines.readline(LONGEST_LINE))
        if event is not None:
            there[str(event.process)] += 1
    names = [name for name, number in seal.events.items() if there[name] < number]
    if not names:
        return "it was changed since it was written"
    missing = ", ".join(
        f"{seal.events[name] - there[name]} of {'process ' * name.isdigit()}{name}"
        for name in sorted(names)
    )
    return f"lines are missing, or damaged, since it was written: {missing}"
