"""The answer of an engine, and the limits of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lockcheck.history.table import Ints

GIGABYTE = 1 << 30
NAMED_OF_ORDER = 50  # the last operations of an order: a reason may mention who holds the lock then


@dataclass(frozen=True, slots=True)
class Patience:
    """The limits of a search; `may_go_on` is called every few thousand steps."""

    may_go_on: Callable[[], bool] = lambda: True
    most_bytes: int = GIGABYTE


endless = Patience()


@dataclass(frozen=True, slots=True)
class Because:
    """One step of an explanation: an operation that has to come before another, and why."""

    before: int  # a row of the table
    after: int
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether some order of the operations on one object explains all answers."""

    linearizable: bool | None  # None: undecided
    engine: str  # that decided: "sweep", "zones", "search"
    reason: str = ""  # why not, or why undecided: one sentence
    rows: tuple[int, ...] = ()  # the operations at fault: rows of the table, in order
    cycle: tuple[Because, ...] = ()  # each before the next, and the last before the first
    prefix: tuple[int, ...] = ()  # the longest legal order that was found
    stuck_on: int | None = None  # the operation that no order gets past

    @property
    def named(self) -> set[int]:
        """The rows that its reason mentions, and more."""
        ends = [row for link in self.cycle for row in (link.before, link.after)]
        return {*self.rows, *ends, *self.prefix[-NAMED_OF_ORDER:]}

    @property
    def evidence(self) -> set[int]:
        """All rows of it."""
        stuck_on = () if self.stuck_on is None else (self.stuck_on,)
        return {*self.named, *self.prefix, *stuck_on}

    def numbered(self, numbers: Ints) -> Answer:
        """The same answer, with the numbers of its rows in another table."""

        def of(row: int) -> int:
            return int(numbers[row])

        return replace(
            self,
            rows=tuple(map(of, self.rows)),
            cycle=tuple(
                replace(link, before=of(link.before), after=of(link.after)) for link in self.cycle
            ),
            prefix=tuple(map(of, self.prefix)),
            stuck_on=None if self.stuck_on is None else of(self.stuck_on),
        )

    @property
    def decided(self) -> bool:
        return self.linearizable is not None
