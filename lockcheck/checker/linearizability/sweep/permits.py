"""Decides mutexes and semaphores without owners or leases, exactly: they only count.

Nothing is done before it has to be. An operation is done when it reaches its answer. An acquire
that finds no permit first has a release done that was invoked by then, and a release that finds
nothing held first an acquire: of several the one whose own answer comes first. An unconfirmed
operation never has to be done: it comes last, as if its answer came after everything.

Why that finds an order whenever there is one: take any order, cut off at some moment. By induction
it has done at least as many acquires and at least as many releases as this sweep. What it did more
in pairs, the sweep can still do in pairs at any time, since an acquire and a release after each
other (in one of the two directions) are always legal. What it did more of one kind, the sweep has
left and may do at once. If an acquire has to be done and all permits are held here, that order has
done one acquire more than the sweep, so by the number of permits one release more, too: there is
one that was invoked by then and is not done here. The same holds for releases with nothing held.
Which one of a kind is done only matters for the deadlines of the others: the first deadline first.

A renewal asserts that something is held at some moment: it takes the first such moment between its
invocation and its answer, and has an acquire done if there was none.

Leases are not judged here: what ends by itself is a certain grant, not any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from lockcheck.checker.linearizability.sweep.holds import SweepHolds
from lockcheck.history.ordering import order_by
from lockcheck.history.table import NEVER, Ints, Op, Table


@dataclass(frozen=True, slots=True)
class Stuck:
    """An operation that cannot be done, and the acquires that are in its way."""

    row: int
    holding: tuple[int, ...]


def keys_crowded(holds: SweepHolds, permits: int) -> Ints:
    """The keys with too many holders at some moment if each client releases only its own grants,
    acquires as late as possible and releases as early as possible."""
    if len(holds) == 0:
        return np.zeros(0, np.int64)
    time = np.concatenate((np.maximum(holds.end, holds.begin), holds.begin))
    given, short = np.repeat([1, 0], len(holds)), np.tile(holds.end <= holds.begin, 2)
    key = np.tile(holds.key, 2)
    # At equal times ends come first, but a hold without duration has to begin before it ends.
    order = order_by(key, time, np.where(given, 2 * short, 1))
    held = np.cumsum(1 - 2 * given[order])  # each key starts at 0 again: all holds end
    return np.unique(key[order][held > permits])


@dataclass(slots=True)
class PermitSweep:
    """The sweep over one key. Waiting operations have been invoked and are not done."""

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
        """Whether the operation can be done, at the latest possible moment."""
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
        """The waiting operation with the first deadline that is not done already."""
        while waiting:
            _, row = heappop(waiting)
            if not self.done[row]:
                self.done[row] = True
                return row
        return None


def stuck(table: Table, rows: Ints, permits: int) -> Stuck | None:
    """The first operation of one key that cannot be done; None if all can."""
    f, start, end = table.f[rows], table.start[rows], table.end[rows]
    counter = PermitSweep(permits, start.tolist(), end.tolist(), f.tolist())
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
    """Twice the row for an invocation, plus one for an answer; invocations first at ties."""
    answered = np.flatnonzero(end < NEVER)
    what = np.concatenate((np.arange(len(start)) * 2, answered * 2 + 1))
    time = np.concatenate((start, end[answered]))
    events: list[int] = what[np.lexsort((what & 1, time))].tolist()
    return events
