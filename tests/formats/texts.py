"""Reading a text as a format, for the tests."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

from lockcheck.errors import HistoryError
from lockcheck.formats import FORMATS, ReadOptions
from lockcheck.formats.read_options import with_terms
from lockcheck.formats.source import Source
from lockcheck.history import Event, History

NAME = "given"


def events_of(name: str, text: str | bytes, options: ReadOptions | None = None) -> list[Event]:
    return list(_events(name, text, Source(NAME, options or ReadOptions())))


def _events(name: str, text: str | bytes, source: Source) -> Iterator[Event]:
    data = text.encode() if isinstance(text, str) else text
    return with_terms(iter(FORMATS[name].read(BytesIO(data), source)), source.options)


def history_of(name: str, text: str | bytes, options: ReadOptions | None = None) -> History:
    source = Source(NAME, options or ReadOptions())
    return History.of(_events(name, text, source), source=NAME, place=source.place)


def error_in(
    name: str, text: str | bytes, options: ReadOptions | None = None
) -> HistoryError | None:
    try:
        history_of(name, text, options)
    except HistoryError as error:
        return error
    return None


def place_and_reason(error: HistoryError | None) -> tuple[int, int | None, str]:
    assert error is not None, "it was accepted"
    assert error.exit_code == 2
    return error.line, error.column, error.reason


def brief(events: list[Event]) -> list[str]:
    """`5 0 invoke acquire k=1`: what matters in most of the tests."""
    return [
        " ".join(
            [str(e.time), str(e.process), e.type.value, e.f]
            + ([e.key] if e.key is not None else [])
            + ([f"={e.value}"] if e.value is not None else [])
            + ([f"token={e.token}"] if e.token is not None else [])
            + ([f"error={e.error}"] if e.error is not None else [])
        )
        for e in events
    ]
