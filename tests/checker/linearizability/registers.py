"""Small histories of registers, drawn by Hypothesis or by a random generator.

They are first made as a correct register would have answered, and then some are changed. Times are
few, so that there are many ties; keys are two, values nearly always unique.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from lockcheck.history import Event, EventType
from lockcheck.history.model import Operation
from lockcheck.history.table import Symbols, Table

Choose = Callable[[int], int]  # a number below this one

CLIENTS = 3
KEYS = ("x", "y")
OK, FAIL, INFO = EventType.OK, EventType.FAIL, EventType.INFO


@dataclass(frozen=True, slots=True)
class Row:
    process: int
    key: str
    f: str
    start: int
    end: int
    outcome: EventType = OK
    asked: int | None = None  # to write, or expected by a cas
    second: int | None = None
    result: int | None = None  # of a read

    @property
    def wrote(self) -> int | None:
        """The value that it wrote; None if it changed nothing."""
        changes = self.outcome is not FAIL and self.asked != self.second
        return (self.second if self.f == "cas" else self.asked) if changes else None

    @property
    def operation(self) -> Operation:
        asked = [self.asked, self.second] if self.f == "cas" else self.asked
        answered = self.result if self.f == "read" else asked

        def event(time: int, kind: EventType, value: object) -> Event:
            return Event(
                time=time, type=kind, f=self.f, process=self.process, key=self.key, value=value
            )

        return Operation(
            event(self.start, EventType.INVOKE, None if self.f == "read" else asked),
            event(self.end, self.outcome, answered),
        )


def table_of(rows: Iterable[Row], symbols: Symbols | None = None) -> Table:
    in_order = sorted(rows, key=lambda row: row.start)
    return Table.of([row.operation for row in in_order], symbols)


@dataclass(slots=True)
class Register:
    """A correct register."""

    choose: Choose
    value: int | None = None
    values: list[int | None] = field(default_factory=lambda: [None])

    def answer(self, row: Row) -> Row:
        choose = self.choose
        lost = row.outcome is INFO and not choose(2)
        if row.f == "read":
            return replace(row, result=self.value)
        if row.f == "write":
            row = replace(row, asked=self.new())
            self.value = self.value if lost else row.asked
            return row
        expected = self.value if choose(6) else self.any()
        row = replace(row, asked=expected, second=self.new() if choose(8) else expected)
        if expected != self.value:
            return row if row.outcome is INFO else replace(row, outcome=FAIL)
        self.value = self.value if lost else row.second
        return row

    def new(self) -> int | None:
        if not self.choose(24):
            return self.any()
        self.values.append(len(self.values))
        return self.values[-1]

    def any(self) -> int | None:
        return self.values[self.choose(len(self.values))]


def correct(choose: Choose, most: int = 9) -> list[Row]:
    """Answers of correct registers, in the order in which operations take effect."""
    free_at = [0] * CLIENTS
    planned: list[tuple[tuple[int, int], int, Row]] = []
    keys = KEYS[: 1 + (choose(4) == 0)]
    for _ in range(1 + choose(most)):
        process = choose(CLIENTS)
        start = free_at[process] + choose(3)
        end = free_at[process] = start + choose(4)
        outcome = OK if choose(6) else INFO
        f = ("read", "read", "write", "write", "cas")[choose(5)]
        took_effect = start + choose(end - start + 1 + 4 * (outcome is INFO)), choose(3)
        row = Row(process, keys[choose(len(keys))], f, start, end, outcome)
        planned.append((took_effect, len(planned), row))
    registers = {key: Register(choose) for key in keys}
    return [registers[row.key].answer(row) for _, _, row in sorted(planned, key=lambda p: p[:2])]


def maybe_spoiled(choose: Choose, most: int = 9) -> list[Row]:
    rows = correct(choose, most)
    for _ in range(choose(4)):
        place = choose(len(rows))
        key = rows[place].key
        values = [v for row in rows if row.key == key for v in (row.asked, row.second)]
        other = values[choose(len(values))] if choose(16) else 99
        rows[place] = _spoiled(choose, rows[place], other)
    return rows


def _spoiled(choose: Choose, row: Row, other: int | None) -> Row:
    """The row later, or with another answer, or ended sooner."""
    later = choose(4)
    if choose(3) == 0:
        return replace(row, start=row.start + later, end=row.end + later + choose(2))
    if row.f == "read":
        return replace(row, result=other)
    if row.f == "cas":
        return replace(row, asked=other, outcome=INFO if choose(4) == 0 else OK)
    return replace(row, end=row.start)
