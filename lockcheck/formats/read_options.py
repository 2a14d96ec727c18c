"""What the user states about another tool's history, since the file may not contain it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import msgspec

from lockcheck.history.event import RUN, Event, Notice, Terms, terms_event


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read and judge a history; what is given here overrides the file."""

    format: str = ""  # by its name; empty: recognized from the content or the file's ending
    model: str = ""
    permits: int | None = None
    ttl_ms: int | None = None
    tells_release: bool = True  # what `Terms` says of it
    partial: bool = False  # a production log: it may begin or end in the middle
    clock_error_ms: float | None = None  # how far apart the clocks of two hosts may be
    clock_errors_ms: Mapping[str, float] = field(default_factory=dict)  # of hosts that differ

    def terms(self, recorded: Terms, began_ns: int = 0) -> Terms:
        """The recorded terms, overridden by these options; `began_ns` by the log's own clock."""
        given: dict[str, Any] = {
            "partial": self.partial or None,
            "began_ns": began_ns or None,
            "model": self.model or None,
            "permits": self.permits,
            "ttl_ms": self.ttl_ms,
            "tells_release": None if self.tells_release else False,
            "clock_error_ms": self.clock_error_ms,
            "clock_errors_ms": dict(self.clock_errors_ms) or None,
        }
        known = {name: value for name, value in given.items() if value is not None}
        return msgspec.structs.replace(recorded, **known)


def with_terms(
    events: Iterator[Event], options: ReadOptions, began_ns: Callable[[], int] = lambda: 0
) -> Iterator[Event]:
    """The events with their terms first, if any; `began_ns` is called after the first event."""
    first = next(events, None)
    if first is None:
        return iter(())
    recorded = _terms_in(first)
    if recorded is None and first.process == RUN and first.f == Notice.TERMS:
        return chain([first], events)  # damaged: the history's reader reports it
    terms = options.terms(recorded or Terms(), began_ns())
    if recorded is not None:
        return chain([msgspec.structs.replace(first, value=msgspec.to_builtins(terms))], events)
    if terms == Terms():
        return chain([first], events)
    return chain([opening_terms(terms, first), first], events)


def opening_terms(terms: Terms, first: Event) -> Event:
    """The terms as an event that is not later than the first one."""
    return msgspec.structs.replace(terms_event(terms), time=min(0, first.time))


def _terms_in(event: Event) -> Terms | None:
    if event.process != RUN or event.f != Notice.TERMS:
        return None
    try:
        return msgspec.convert(event.value, Terms)
    except msgspec.ValidationError:
        return None
