"""Mutexes and semaphores of which nobody knows who holds them: they only count.

Nothing is done before it has to be. When an operation reaches its answer, it is done; an acquire
that finds no permit first has a release done that was invoked by then, a release that finds
nothing held first an acquire, and among those the one whose own answer comes first. What nobody
confirmed never has to be done: it comes last, as if its answer came after everything.

Why that finds an order whenever there is one: take any order, cut off at some moment. By induction
it has done at least as many acquires and at least as many releases as this sweep has. What it did
more in pairs, the sweep can still do in pairs whenever it likes, since an acquire and a release
after each other (in one of the two directions) are always legal. What it did more of one kind, the
sweep has left and may do at once. If an acquire has to be done and all permits are held here, that
order has done one acquire more than the sweep, so by the number of permits one release more too:
there is one that was invoked by then and is not done here. The same for releases with nothing held.
Which of a kind is done only matters for when the others have to be: the first deadline first.

A renewal asserts that something is held at some moment: it is content with the first such moment
between its invocation and its answer, and has an acquire done when there was none.

Leases are not judged here: what ends by itself is one grant, not any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from lockcheck.checker.linearizability.sweep.clients import Flags
from lockcheck.checker.linearizability.sweep.holds import SweepHolds
from lockcheck.history.ordering import order_by
from lockcheck.history.table import NEVER, Ints, Op, Outcome, Table


@dataclass(frozen=True, slots=True)
class Stuck:
    """An operation that cannot be done, and the acquires that are in its way."""

    row: int
    holding: tuple[int, ...]


def keys_crowded(holds: SweepHolds, permits: int) -> Ints:
    """Keys for which each client giving back only what it was granted itself, as late as can be
    taken and as early as can be given back, is too many at some moment. To see that takes no order
    of events but only how many there were by when."""
    if len(holds) == 0:
        return np.zeros(0, np.int64)
    time = np.concatenate((np.maximum(holds.end, holds.begin), holds.begin))
    given, short = np.repeat([1, 0], len(holds)), np.tile(holds.end <= holds.begin, 2)
    key = np.tile(holds.key, 2)
    # At one moment what ends comes first; but what lasts no longer than that has to begin.
    order = order_by(key, time, np.where(given, 2 * short, 1))
    held = np.cumsum(1 - 2 * given[order])  # every key's begins at 0 again: all are given back
    return np.unique(key[order][held > permits])


@dataclass(slots=True)
class Counter:
    """The sweep over one key. What waits has been invoked and is not done."""

    permits: int
    start: list[int]
    end: list[int]
    f: list[int]
    holding: list[int] = field(default_factory=list)  # the acquires that are done, oldest first
    acquires: list[tuple[int, int]] = field(default_factory=list)  # deadline, row
    releases: list[tuple[int, int]] = field(default_factory=list)
    renewals: set[int] = field(default_factory=set)
    done: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self.done = bytearray(len(self.f))

    def invoked(self, row: int) -> None:
        f = self.f[row]
        if f == Op.RENEW:
            if not self.holding:
                self.renewals.add(row)
            return
        heappush(self.acquires if f == Op.ACQUIRE else self.releases, (self.end[row], row))

    def answered(self, row: int) -> bool:
        """Whether it can be done, at the latest moment that it has."""
        f = self.f[row]
        if f == Op.RENEW:
            return row not in self.renewals or self._acquire()
        if self.done[row]:
            return True
        self.done[row] = True
        if f == Op.ACQUIRE:
            fine = len(self.holding) < self.permits or self._release()
            self._take(row)
        else:
            fine = bool(self.holding) or self._acquire()
            self._give()
        return fine

    def _acquire(self) -> bool:
        row = self._next(self.acquires)
        if row is not None:
            self._take(row)
        return row is not None

    def _release(self) -> bool:
        row = self._next(self.releases)
        if row is not None:
            self._give()
        return row is not None

    def _take(self, row: int) -> None:
        self.holding.append(row)
        self.renewals.clear()

    def _give(self) -> None:
        del self.holding[:1]

    def _next(self, waiting: list[tuple[int, int]]) -> int | None:
        """The one with the first deadline; what was done when it had to be is still in here."""
        while waiting:
            _, row = heappop(waiting)
            if not self.done[row]:
                self.done[row] = True
                return row
        return None


def stuck(table: Table, rows: Ints, permits: int) -> Stuck | None:
    """The first operation of one key that cannot be done; None where all can."""
    f, start, end = table.f[rows], table.start[rows], table.end[rows]
    counter = Counter(permits, start.tolist(), end.tolist(), f.tolist())
    for event in _events(start, end):
        row = event >> 1
        if not event & 1:
            counter.invoked(row)
            continue
        holding = tuple(counter.holding)
        if not counter.answered(row):
            return Stuck(int(rows[row]), tuple(int(rows[i]) for i in holding))
    return None


def _events(start: Ints, end: Ints) -> list[int]:
    """Twice the row for what is invoked, one more for what is answered; ties are concurrent, so
    invocations come first."""
    answered = np.flatnonzero(end < NEVER)
    what = np.concatenate((np.arange(len(start)) * 2, answered * 2 + 1))
    time = np.concatenate((start, end[answered]))
    events: list[int] = what[np.lexsort((what & 1, time))].tolist()
    return events


def relevant(table: Table) -> Flags:
    told = table.outcome == Outcome.OK
    maybe = (table.outcome == Outcome.INFO) & (table.f != Op.RENEW)
    wanted: Flags = (table.f <= Op.RENEW) & (told | maybe)
    return wanted
