"""What the user says about a history of another tool, because the file itself may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec

from lockcheck.history.event import RUN, Event, Notice, Terms, terms_event


@dataclass(frozen=True, slots=True)
class Asked:
    format: str = ""  # by its name; empty: seen from the content, or from the file's ending
    model: str = ""
    permits: int | None = None
    ttl_ms: int | None = None
    partial: bool = False  # a format of logs that go on for years

    def terms(self, said: Terms, began_ns: int = 0) -> Terms:
        """What the file says, overridden by the user. `began_ns`: when the log began by its own
        clock, if that is known."""
        given: dict[str, Any] = {
            "partial": self.partial or None,
            "began_ns": began_ns or None,
            "model": self.model or None,
            "permits": self.permits,
            "ttl_ms": self.ttl_ms,
        }
        known = {name: value for name, value in given.items() if value is not None}
        return msgspec.structs.replace(said, **known)


def with_terms(
    events: Iterator[Event], asked: Asked, began_ns: Callable[[], int] = lambda: 0
) -> Iterator[Event]:
    """The same events, with the terms first if there are any. `began_ns`, when the log began by its
    own clock, is asked after the first event was read."""
    first = next(events, None)
    if first is None:
        return iter(())
    said = _terms_in(first)
    if said is None and first.process == RUN and first.f == Notice.TERMS:
        return chain([first], events)  # damaged: the reader of the history will say so
    terms = asked.terms(said or Terms(), began_ns())
    if said is not None:
        return chain([msgspec.structs.replace(first, value=msgspec.to_builtins(terms))], events)
    if terms == Terms():
        return chain([first], events)
    return chain([opening_terms(terms, first), first], events)


def opening_terms(terms: Terms, first: Event) -> Event:
    """The terms, not after the first event."""
    return msgspec.structs.replace(terms_event(terms), time=min(0, first.time))


def _terms_in(event: Event) -> Terms | None:
    if event.process != RUN or event.f != Notice.TERMS:
        return None
    try:
        return msgspec.convert(event.value, Terms)
    except msgspec.ValidationError:
        return None
