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
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from lockcheck.checker.linearizability.sweep_believed import as_confirmed, believed
from lockcheck.checker.linearizability.sweep_clients import Clients, Flags
from lockcheck.checker.linearizability.sweep_holds import promised_since
from lockcheck.checker.linearizability.sweep_nested import Depth, left_by
from lockcheck.history.ordering import order_by
from lockcheck.history.table import NEVER, Ints, Op, Outcome, Table


@dataclass(frozen=True, slots=True)
class Stuck:
    """An operation that cannot be done, and the acquires that are in its way."""

    row: int
    holding: tuple[int, ...]


def keys_unexplained(clients: Clients, permits: int) -> Ints:
    """All keys but those that are fine even if each client only releases what it acquired itself;
    to see that takes no order of events but only how many there were by when."""
    if len(clients.marks) == 0:
        return np.zeros(0, np.int64)
    keys = clients.key(clients.starts)
    if clients.until is not None:
        return np.unique(keys)
    depth = Depth.of(as_confirmed(clients, believed(clients)), tokens=False)
    bad = keys[clients.overlapping].tolist()
    bad += clients.key(depth.ungranted.lacking).tolist()
    return np.union1d(bad, _crowded(depth, permits)).astype(np.int64)


def _crowded(depth: Depth, permits: int) -> Ints:
    """Keys of which more permits are taken at some moment than there are."""
    clients, marks = depth.clients, depth.clients.marks
    f, start, end = clients.f[marks], clients.start[marks], clients.end[marks]
    acquired, released = f == Op.ACQUIRE, f == Op.RELEASE
    left, lent = left_by(depth), depth.lent
    gone, come = _grown(left, depth), _grown(lent, depth)
    borrowed = come > 0
    freed = np.where(released, np.where(borrowed, end, start), end)
    by = np.flatnonzero(gone)
    spare = np.searchsorted(clients.maybe_released, clients.starts[clients.client(marks[by])])
    last = clients.start[clients.maybe_released[spare + left[by] - 1]] if len(by) else by
    times = (
        end[acquired],
        np.repeat(start, come),
        freed[released],
        np.repeat(np.maximum(end[by], last), gone[by]),
    )
    spots = (
        marks[acquired],
        np.repeat(marks, come),
        marks[released],
        np.repeat(marks[by], gone[by]),
    )
    taking = np.repeat([1, 1, 0, 0], [len(part) for part in times])
    key = clients.key(np.concatenate(spots))
    time = np.concatenate(times)
    order = order_by(key, time, taking)
    held = np.cumsum(2 * taking[order] - 1)
    key = key[order]
    fresh = np.flatnonzero(np.diff(key, prepend=key[0] - 1))
    group = np.cumsum(np.isin(np.arange(len(key)), fresh)) - 1
    held -= np.concatenate(([0], held))[fresh][group]
    return np.unique(key[(held > permits) | (held < 0)])


def _grown(values: Ints, depth: Depth) -> Ints:
    before = np.zeros(len(values), np.int64)
    before[1:] = np.where(depth.final[:-1], 0, values[:-1])
    return values - before


def leased_out(table: Table, until: Ints) -> Ints:
    """For each row of a granted acquire when its lease may end, its client's renewals counted."""
    clients = Clients.of(table, until)
    marks = clients.marks
    fresh = clients.f[marks] != Op.RENEW
    ends = np.full(len(table), NEVER)
    if len(marks) == 0:
        return ends
    promised = promised_since(clients.until_of(np.arange(len(marks))), _new(clients, fresh))
    granted = np.flatnonzero(clients.f[marks] == Op.ACQUIRE)
    nexts = np.append(np.flatnonzero(_new(clients, fresh)), len(marks))
    last = nexts[np.searchsorted(nexts, granted, "right")] - 1
    ends[clients.row[marks[granted]]] = promised[last]
    return ends


def _new(clients: Clients, fresh: Flags) -> Flags:
    client = clients.client(clients.marks)
    new = fresh.copy()
    new[0] = True
    new[1:] |= client[1:] != client[:-1]
    return new


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


def stuck(table: Table, rows: Ints, permits: int, leases: Ints | None) -> Stuck | None:
    """The first operation of one key that cannot be done; None where all can."""
    f, start, end = table.f[rows], table.start[rows], table.end[rows]
    numbers = rows
    if leases is not None:
        ending = np.flatnonzero(leases[rows] < NEVER)
        f = np.concatenate((f, np.full(len(ending), Op.RELEASE, f.dtype)))
        start = np.concatenate((start, leases[rows][ending]))
        end = np.concatenate((end, np.full(len(ending), NEVER)))
        numbers = np.concatenate((rows, rows[ending]))
    counter = Counter(permits, start.tolist(), end.tolist(), f.tolist())
    for event in _events(start, end):
        row = event >> 1
        if not event & 1:
            counter.invoked(row)
            continue
        holding = tuple(counter.holding)
        if not counter.answered(row):
            return Stuck(int(numbers[row]), tuple(int(numbers[i]) for i in holding))
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
