"""Operations told as rows, each with its beginning and its end, put into our events.

A row that has no end was never answered: it may take effect at any time. Its client may go on all
the same; then it is known that it had given the answer up by then. Apart from that a client does
one thing at a time: who does several at once is several clients, and has to be told apart.

A row `lost` is no operation but a notice: at its beginning the client was told that it holds the
lock no longer. It may stand anywhere, also while an operation is under way. At the same time as
others of its client it comes after those that have ended and before those that begin; among those
that took no time at all, rows are in the order in which they were given.

A storage's number, too, is known from an answer only: one that nobody answered keeps none, since
nobody knows whether the storage took it. For example, the write

    client a, write, from 5 to 9, ok, value "y", base "x", seq 2

is an invocation at 5 with its value and its base, and an answer at 9 with its number.

Only a renewal may be under way together with something else of its client: then it is its keeper's,
the thread that keeps a lease alive, who gets a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, repeat

import numpy as np
from numpy.typing import NDArray

from lockcheck.errors import HistoryError
from lockcheck.formats.jepsen_op import is_plain_number
from lockcheck.formats.names import our_client
from lockcheck.history.event import Event, EventType, F, Notice
from lockcheck.history.history import keeper_of
from lockcheck.history.table import NEVER, Ints

LONGEST_NS = 1 << 60

ANSWERED_TOKEN = frozenset({F.ACQUIRE, F.RENEW})


@dataclass(slots=True)
class Intervals:
    """Columns: place `i` of each speaks of the same operation. Times have any origin."""

    lines: list[int] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    fs: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int | None] = field(default_factory=list)
    outcomes: list[EventType] = field(default_factory=list)
    tokens: list[int | None] = field(default_factory=list)
    values: list[object] = field(default_factory=list)
    results: list[object] = field(default_factory=list)
    nodes: list[str | None] = field(default_factory=list)
    ttls_ms: list[int | None] = field(default_factory=list)
    seqs: list[int | None] = field(default_factory=list)
    bases: list[object] = field(default_factory=list)
    ofs: list[str | None] = field(default_factory=list)  # of renewals: whose hold they extend
    paths: list[str] = field(default_factory=list)  # where in its line each is; or empty

    def error(self, place: int, reason: str, source: str, *, cure: str = "") -> HistoryError:
        prefix = f"{self.paths[place]}: " if self.paths else ""
        return HistoryError(f"{prefix}{reason}", source=source, line=self.lines[place], cure=cure)

    def name(self, place: int) -> str:
        return self.paths[place] if self.paths else f"line {self.lines[place]}"


def events_of_intervals(rows: Intervals, source: str) -> Iterator[Event]:
    """In the order of their times, which are counted from the first beginning."""
    if not rows.lines:
        return iter(())
    _check_numbers(rows, source)
    start, end = _times(rows, source)
    lost = np.array([f == Notice.LOST for f in rows.fs])
    names = _processes([*rows.clients, *filter(None, set(rows.ofs))])
    until = np.where(lost, start, end)
    order = _by_client(rows, until, start)
    if F.RENEW in rows.fs:
        keepers = _keepers(rows, order[~lost[order]], start, end)
        names |= _tell_apart(rows, keepers)
        order = _by_client(rows, until, start) if keepers else order
    told = _told(rows, source, order[~lost[order]], start, end)
    events = _events(rows, start, told, names)
    return map(events.__getitem__, _in_order(order, start, told))


def _by_client(rows: Intervals, end: Ints, start: Ints) -> Ints:
    numbers = {name: number for number, name in enumerate(dict.fromkeys(rows.clients))}
    client = np.fromiter(map(numbers.__getitem__, rows.clients), np.int64, len(rows.lines))
    return np.lexsort((end, start, client))


def _keepers(rows: Intervals, order: Ints, start: Ints, end: Ints) -> list[int]:
    """Renewals that were under way together with another operation of their client. `order` is
    that of the operations, client after client."""
    clashes = np.flatnonzero(_busy(rows, order, end) & (end[order[:-1]] > start[order[1:]]))
    found: list[int] = []
    busy_until, client = -1, ""
    for place, coming in pairwise([*order.tolist(), None] if len(clashes) else ()):
        if rows.clients[place] != client:
            client, busy_until = rows.clients[place], -1
        answered = -1 if end[place] == NEVER else int(end[place])
        if rows.fs[place] != F.RENEW:
            busy_until = max(busy_until, answered)
            continue
        soon = coming is not None and rows.clients[coming] == client and start[coming] < answered
        if soon or busy_until > start[place]:
            found.append(place)
    return found


def _busy(rows: Intervals, order: Ints, end: Ints) -> NDArray[np.bool_]:
    """Whether the next operation is of the same client, who has an answer to this one."""
    clients = np.array(rows.clients, object)
    here, after = order[:-1], order[1:]
    busy: NDArray[np.bool_] = (clients[here] == clients[after]) & (end[here] != NEVER)
    return busy


def _tell_apart(rows: Intervals, keepers: list[int]) -> dict[str, str]:
    """Gives each of them its keeper's name; these names are no numbers."""
    for place in keepers:
        client = rows.clients[place]
        rows.ofs[place] = rows.ofs[place] or client
        rows.clients[place] = keeper_of(client)
    return {rows.clients[place]: our_client(rows.clients[place]) for place in keepers}


def _check_numbers(rows: Intervals, source: str) -> None:
    """Two writes of the same number have no order, and some judge would have to make one up."""
    if not any(seq is not None for seq in rows.seqs):
        return
    taken: dict[tuple[str, int], int] = {}
    for place, (f, seq, outcome) in enumerate(zip(rows.fs, rows.seqs, rows.outcomes, strict=True)):
        if f != F.WRITE or seq is None or outcome is not EventType.OK:
            continue
        other = taken.setdefault((rows.keys[place] or "", seq), place)
        if other != place:
            reason = f"its number {seq} is that of another write, {rows.name(other)}"
            raise rows.error(
                place, reason, source, cure="a storage numbers each write of a key once"
            )


def _times(rows: Intervals, source: str) -> tuple[Ints, Ints]:
    first = min(rows.starts)
    last = max([*rows.starts, *(end for end in rows.ends if end is not None)])
    if last - first > LONGEST_NS:
        late = next(
            place
            for place, (start, end) in enumerate(zip(rows.starts, rows.ends, strict=True))
            if max(start, end or start) - first > LONGEST_NS
        )
        raise rows.error(late, "its time lies more than 36 years after the first one", source)
    start = np.array([time - first for time in rows.starts], np.int64)
    # What ends before everything began is kept as such, whatever its number, and refused below.
    end = np.array(
        [NEVER if time is None else max(time - first, -1) for time in rows.ends], np.int64
    )
    early = np.flatnonzero(end < start)
    if len(early):
        raise rows.error(int(early[0]), "it ends before it begins", source)
    return start, end


def _processes(clients: list[str]) -> dict[str, int | str]:
    """Numbers where every client has one."""
    names = dict.fromkeys(clients)
    if all(map(is_plain_number, names)):
        return {name: int(name) for name in names}
    return {name: our_client(name) for name in names}


def _told(rows: Intervals, source: str, order: Ints, start: Ints, end: Ints) -> Ints:
    """When each was answered, or given up; NEVER for neither. `order` is that of the operations."""
    here, after = order[:-1], order[1:]
    clients = np.array(rows.clients, object)
    same = clients[here] == clients[after]
    open_end = end[here] == NEVER
    overlap = np.flatnonzero(same & ~open_end & (end[here] > start[after]))
    if len(overlap):
        late, busy = min((int(after[place]), int(here[place])) for place in overlap.tolist())
        raise rows.error(
            late,
            f"its client is still busy with {rows.name(busy)}",
            source,
            cure="a client is one thread of control: give each its own name",
        )
    told = end.copy()
    given_up = same & open_end
    told[here[given_up]] = start[after[given_up]]
    return told


def _in_order(order: Ints, start: Ints, told: Ints) -> list[int]:
    """Client after client, each in its own order, which the sort by time then leaves alone."""
    times = np.stack((start[order], told[order]), axis=1).reshape(-1)
    events = np.stack((order, order + len(order)), axis=1).reshape(-1)
    place = np.argsort(times, kind="stable")
    ordered: list[int] = events[place[times[place] != NEVER]].tolist()
    return ordered


def _events(rows: Intervals, start: Ints, told: Ints, names: dict[str, int | str]) -> list[Event]:
    """The invocations and the notices, then the answers."""
    processes = [names[name] for name in rows.clients]
    nothing: repeat[None] = repeat(None)
    granted = [f in ANSWERED_TOKEN for f in rows.fs]
    shown = map(_unless, granted, rows.tokens)
    gained = map(_if, granted, rows.tokens)
    kinds = [EventType.INFO if f == Notice.LOST else EventType.INVOKE for f in rows.fs]
    known = [outcome is not EventType.INFO for outcome in rows.outcomes]
    common = (rows.fs, rows.keys)
    return [
        *map(
            Event,
            start.tolist(),
            processes,
            kinds,
            *common,
            rows.values,
            rows.nodes,
            shown,
            nothing,
            nothing,
            rows.bases,
            rows.ttls_ms,
            nothing,
            nothing,
            [None if of is None else names[of] for of in rows.ofs],
        ),
        *map(
            Event,
            told.tolist(),
            processes,
            rows.outcomes,
            *common,
            rows.results,
            rows.nodes,
            gained,
            nothing,
            map(_if, known, rows.seqs),
        ),
    ]


def _if(condition: bool, number: int | None) -> int | None:
    return number if condition else None


def _unless(condition: bool, token: int | None) -> int | None:
    return None if condition else token
