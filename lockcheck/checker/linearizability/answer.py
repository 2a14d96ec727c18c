"""What an engine answers, whichever it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

GIGABYTE = 1 << 30


@dataclass(frozen=True, slots=True)
class Patience:
    """What a search may take. The judges have no clock, so whoever has one is asked every few
    thousand steps whether to go on; who passes nothing waits for as long as it takes."""

    may_go_on: Callable[[], bool] = lambda: True
    most_bytes: int = GIGABYTE


endless = Patience()


@dataclass(frozen=True, slots=True)
class Because:
    """One step of an explanation: this operation has to come before that one, and why."""

    before: int  # a row of the table
    after: int
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether there is an order of the operations on one object that explains all answers."""

    linearizable: bool | None  # None: it could not be decided
    engine: str  # which of them decided: "sweep", "zones", "search"
    reason: str = ""  # why not, or why it could not be decided: one sentence
    rows: tuple[int, ...] = ()  # the operations at fault, rows of the table, in order
    circle: tuple[Because, ...] = ()  # each comes before the next, and the last before the first
    prefix: tuple[int, ...] = ()  # the longest legal order that was found, and
    stuck_on: int | None = None  # the operation that no order could go past

    @property
    def named(self) -> set[int]:
        """The rows that its reason speaks of."""
        ends = [row for link in self.circle for row in (link.before, link.after)]
        return {*self.rows, *ends, *self.prefix[-1:]}

    @property
    def told(self) -> bool:
        return self.linearizable is not None
