"""What a reader gets in addition to the bytes, and returns in addition to the events."""

from __future__ import annotations

from dataclasses import dataclass, field

from lockcheck.errors import HistoryError
from lockcheck.formats.asked import Asked
from lockcheck.history.event import SINCE_1970_NS
from lockcheck.history.files import Position


@dataclass(slots=True)
class Source:
    name: str
    asked: Asked = field(default_factory=Asked)
    place: Position = field(default_factory=Position)  # moved on by readers of unchecked events
    notes: list[str] = field(default_factory=list)  # for the user: what was ignored, and why
    began_ns: int = 0  # by the clock of the log, where its times are counted from that

    def counts_from(self, time_ns: int) -> None:
        if time_ns >= SINCE_1970_NS:
            self.began_ns = time_ns

    def error(self, reason: str, line: int = 0, column: int | None = None) -> HistoryError:
        return HistoryError(reason, source=self.name, line=line, column=column)
