"""Tokens grow from grant to grant: so they tell the order of the holds, and time must agree.

A grant whose token nobody was told (it was not confirmed, or its answer had none) takes one that
is left: between the tokens 4 and 6 there can be one such grant, between 4 and 5 none. Each has a
range of places between the holds with tokens that time allows it. Places are filled from the left,
each with those that have to be gone first (earliest deadline): the usual exchange shows that if
this fails, everything does.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from lockcheck.checker.linearizability.sweep.holds import SweepHolds
from lockcheck.checker.linearizability.sweep.order import Collision, SortKeys, holds_by_key
from lockcheck.history.ordering import order_by
from lockcheck.history.table import NO_TOKEN, Ints


def keys_out_of_order(holds: SweepHolds) -> Ints:
    """Where the tokens do not agree with the time. Nothing here is about holds without tokens."""
    told = np.flatnonzero(holds.token != NO_TOKEN)
    if len(told) == 0:
        return np.zeros(0, np.int64)
    key, token = holds.key, holds.token
    words = SortKeys.of(holds, key)
    order = (
        order_by(key, token) if len(told) == len(key) else told[order_by(key[told], token[told])]
    )
    key, token = key[order], token[order]
    bad = (token[1:] == token[:-1]) & (key[1:] == key[:-1])
    del token
    latest = np.maximum.accumulate(words.end[order])
    bad |= words.begin[order][1:] < latest[:-1]
    return np.unique(key[1:][bad])


def keys_without_room(holds: SweepHolds) -> Ints:
    """Where the grants whose tokens nobody was told find no order among the others."""
    untold = holds.token == NO_TOKEN
    concerned = np.unique(holds.clients.key(holds.first[untold]))
    if len(concerned) == 0:
        return concerned
    concerned_too = np.isin(holds.key, concerned, kind="table")
    some = holds if concerned_too.all() else holds.take(concerned_too)
    bad = [key for key, which in holds_by_key(some) if not _fits(some.take(which))]
    return np.array(bad, dtype=np.int64)


def _fits(holds: SweepHolds) -> bool:
    places = placed(holds)
    if isinstance(places, int):
        return False
    untold = holds.take(holds.token == NO_TOKEN)
    order = np.lexsort((np.maximum(untold.begin, untold.end), places))
    latest = np.maximum.accumulate(untold.end[order])
    return not (untold.begin[order][1:] < latest[:-1]).any()


def placed(holds: SweepHolds) -> Ints | int:
    """Of the holds of one key, those without tokens: before how many of the others each can come;
    or the number of one that has no place."""
    told = np.flatnonzero(holds.token != NO_TOKEN)
    order = told[order_by(holds.token[told])]
    begin, end, token = holds.begin[order], holds.end[order], holds.token[order]
    untold = np.flatnonzero(holds.token == NO_TOKEN)
    latest = np.maximum.accumulate(end)
    soonest = np.minimum.accumulate(begin[::-1])[::-1]
    lowest = np.searchsorted(soonest, holds.end[untold], "left")
    highest = np.searchsorted(latest, holds.begin[untold], "right")
    result = _filled(lowest.tolist(), highest.tolist(), token)
    return np.array(result) if isinstance(result, list) else int(untold[result])


def _filled(lowest: list[int], highest: list[int], token: Ints) -> list[int] | int:
    waiting = sorted(range(len(lowest)), key=lowest.__getitem__, reverse=True)
    places = [0] * len(lowest)
    due: list[tuple[int, int]] = []
    place = 0
    while waiting or due:
        if not due:
            place = max(place, lowest[waiting[-1]])
        while waiting and lowest[waiting[-1]] <= place:
            heappush(due, (highest[waiting[-1]], waiting.pop()))
        for _ in range(min(_free(token, place), len(due))):
            until, which = heappop(due)
            if until < place:
                return which
            places[which] = place
        if due and due[0][0] <= place:
            return due[0][1]
        place += 1
    return places


def _free(token: Ints, place: int) -> int:
    """How many tokens are left between two that were told; before the first nobody counts."""
    if place in (0, len(token)):
        return 1 << 60
    return max(int(token[place]) - int(token[place - 1]) - 1, 0)


def misplaced(holds: SweepHolds) -> Iterator[Collision]:
    """Of the holds of one key: the earliest whose token is out of order, if there is any."""
    told = np.flatnonzero(holds.token != NO_TOKEN)
    order = told[np.argsort(holds.token[told], kind="stable")]
    begin, end, token = holds.begin[order], holds.end[order], holds.token[order]
    latest = np.maximum.accumulate(end)
    repeated = token[1:] == token[:-1]
    bad = np.flatnonzero((begin[1:] < latest[:-1]) | repeated)
    if len(bad) == 0:
        return
    growing = np.arange(len(end))
    growing[1:][end[1:] <= latest[:-1]] = 0
    lower = np.where(repeated[bad], bad, np.maximum.accumulate(growing)[bad])
    seen = np.maximum(begin[lower], begin[bad + 1])
    first = int(np.argmin(seen))
    low, high = int(lower[first]), int(bad[first]) + 1
    one, other = sorted((low, high), key=lambda i: int(begin[i]))
    reason = _reason(int(token[low]), int(token[high]), late=one == high)
    yield Collision(int(order[one]), int(order[other]), int(seen[first]), reason)


def _reason(lower: int, higher: int, *, late: bool) -> str:
    """None is needed where the lower one came first: then both were held at the same time."""
    if lower == higher:
        return f"token {lower} was granted twice"
    return f"token {lower} is lower than {higher}, but was held later" if late else ""
