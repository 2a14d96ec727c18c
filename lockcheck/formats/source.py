"""What a reader gets beside the bytes, and returns beside the events."""

from __future__ import annotations

from dataclasses import dataclass, field

from lockcheck.errors import HistoryError
from lockcheck.formats.read_options import ReadOptions
from lockcheck.history.event import SINCE_1970_NS
from lockcheck.history.files import Position


@dataclass(slots=True)
class Source:
    """A history's name and read options; readers add notes and the line they are at."""

    name: str
    options: ReadOptions = field(default_factory=ReadOptions)
    place: Position = field(default_factory=Position)  # updated by readers of unchecked events
    notes: list[str] = field(default_factory=list)  # for the user: what was ignored, and why
    began_ns: int = 0  # when the log began, if its times count from 1970

    def counts_from(self, time_ns: int) -> None:
        """Notes when the log began, if `time_ns` counts from 1970."""
        if time_ns >= SINCE_1970_NS:
            self.began_ns = time_ns

    def note(self, number: int, one: str, many: str) -> None:
        """Notes what was ignored, if there was any: `many` has the number in it."""
        if number:
            self.notes.append(one if number == 1 else many.format(number=f"{number:,}"))

    def error(self, reason: str, line: int = 0, column: int | None = None) -> HistoryError:
        return HistoryError(reason, source=self.name, line=line, column=column)
