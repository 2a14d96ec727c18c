"""Good histories, and what it takes to cut one up and put it together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from msgspec.structs import replace

from lockcheck.history import Event, F, History, Hold, Operation
from lockcheck.history.event import STORAGE
from tests.simulation import Plan, simulate

Spoil = Callable[[], History]
Mutation = Callable[[History], Iterator[Spoil]]
LOCKS = ("queue", "fenced")
JUST_AFTER_NS = 1_000
RETIRED = 1_001  # as what a client goes on whose process is retired
SOMEBODY = 1_000


def good_history(seed: int, lock: str) -> History:
    plan = Plan(
        seed=seed,
        lock=lock,
        until_ms=160,
        calm_ms=0,
        clients=3,
        rest_ms=(2, 8),
        renews=True,
        jobs=True,
    )
    return simulate(plan)


@dataclass
class Tape:
    """A history's events, to be cut and put together again."""

    history: History
    events: list[Event] = field(init=False)

    def __post_init__(self) -> None:
        self.events = list(self.history.events)

    def put(self, old: Event, *new: Event) -> None:
        """In place of `old`: equal events are none, each has its process and its time."""
        place = next(n for n, event in enumerate(self.events) if event is old)
        self.events[place : place + 1] = new

    def drop(self, operation: Operation) -> None:
        self.put(operation.invoke)
        if operation.answer is not None:
            self.put(operation.answer)

    def move(self, operation: Operation, start_ns: int, end_ns: int) -> None:
        self.put(operation.invoke, replace(operation.invoke, time=start_ns))
        assert operation.answer
        self.put(operation.answer, replace(operation.answer, time=end_ns))

    def done(self) -> History:
        return History.of(sorted(self.events, key=lambda event: event.time))


@dataclass(frozen=True)
class Told:
    """A client's write with what the storage says of it."""

    write: Operation
    entry: Event
    hold: Hold


def told_writes(history: History) -> list[Told]:
    """In the storage's order. Each was accepted: the history is good."""
    entries = {e.seq: e for e in history.events if e.process == STORAGE and e.f == F.WRITE}
    found = []
    for hold in history.holds:
        for operation in own(history, hold, F.WRITE):
            assert operation.answer
            entry = entries[operation.answer.seq]
            found.append(Told(operation, entry, hold))
    return sorted(found, key=lambda told: told.entry.seq or 0)


def own(history: History, hold: Hold, f: str) -> list[Operation]:
    return [
        o
        for o in history.operations
        if o.f == f and o.process == hold.process and hold.start_ns <= o.start_ns <= hold.end_ns
    ]


def next_event_ns(history: History, process: int | str, after_ns: int) -> int:
    """When the process is next seen; the end of the history if never."""
    later = (e.time for e in history.events if e.process == process and e.time > after_ns)
    return min(later, default=history.end_ns)


def takeovers(history: History) -> Iterator[tuple[Hold, Hold]]:
    """A hold that was released, and the next one, which is another client's."""
    for earlier, later in pairwise(history.holds):
        if earlier.release is not None and earlier.process != later.process:
            yield earlier, later
