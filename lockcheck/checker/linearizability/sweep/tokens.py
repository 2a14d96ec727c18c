"""Tokens grow from grant to grant: they give the order of the holds, and times must agree with it.

A grant with an unknown token (it was not confirmed, or its answer had none) takes a free one:
between the tokens 4 and 6 there can be one such grant, between 4 and 5 none. Times allow each a
range of places between the holds with tokens. Places are filled from the left, each with the grants
whose range ends first (earliest deadline): the usual exchange argument shows that if this fails,
everything does.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from lockcheck.checker.linearizability.sweep.holds import SweepHolds
from lockcheck.checker.linearizability.sweep.order import Collision, SortKeys
from lockcheck.history.ordering import groups_of, order_by
from lockcheck.history.table import NO_TOKEN, Ints


def keys_out_of_order(holds: SweepHolds) -> Ints:
    """The keys where tokens contradict times; holds without tokens are not considered."""
    known = np.flatnonzero(holds.token != NO_TOKEN)
    if len(known) == 0:
        return np.zeros(0, np.int64)
    key, token = holds.key, holds.token
    words = SortKeys.of(holds, key)
    order = (
        order_by(key, token)
        if len(known) == len(key)
        else known[order_by(key[known], token[known])]
    )
    key, token = key[order], token[order]
    bad = (token[1:] == token[:-1]) & (key[1:] == key[:-1])
    del token
    latest = np.maximum.accumulate(words.end[order])
    bad |= words.begin[order][1:] < latest[:-1]
    return np.unique(key[1:][bad])


def keys_out_of_turn(holds: SweepHolds) -> Ints:
    """The keys where a client's next hold may come first by the times, and by the tokens."""
    if len(holds) == 0:
        return np.zeros(0, np.int64)
    token, client = holds.token, holds.clients.client(holds.first)
    grows = (token[1:] > token[:-1]) & (token[:-1] != NO_TOKEN)
    swapped = (client[1:] == client[:-1]) & (holds.begin[:-1] >= holds.end[1:]) & ~grows
    return np.unique(holds.clients.key(holds.first[1:][swapped]))


def keys_without_room(holds: SweepHolds) -> Ints:
    """The keys where grants with unknown tokens have no place among the others."""
    unknown = holds.token == NO_TOKEN
    concerned = np.unique(holds.clients.key(holds.first[unknown]))
    if len(concerned) == 0:
        return concerned
    on_them = np.isin(holds.key, concerned, kind="table")
    some = holds if on_them.all() else holds.take(on_them)
    bad = [key for key, which in groups_of(some.key) if not _fits(some.take(which))]
    return np.array(bad, dtype=np.int64)


def _fits(holds: SweepHolds) -> bool:
    places = placed(holds)
    if isinstance(places, int):
        return False
    unknown = holds.take(holds.token == NO_TOKEN)
    order = np.lexsort((np.maximum(unknown.begin, unknown.end), places))
    latest = np.maximum.accumulate(unknown.end[order])
    return not (unknown.begin[order][1:] < latest[:-1]).any()


def placed(holds: SweepHolds) -> Ints | int:
    """For each hold without a token how many of the others precede it; or one without a place."""
    known = np.flatnonzero(holds.token != NO_TOKEN)
    order = known[order_by(holds.token[known])]
    begin, end, token = holds.begin[order], holds.end[order], holds.token[order]
    unknown = np.flatnonzero(holds.token == NO_TOKEN)
    latest = np.maximum.accumulate(end)
    soonest = np.minimum.accumulate(begin[::-1])[::-1]
    lowest = np.searchsorted(soonest, holds.end[unknown], "left")
    highest = np.searchsorted(latest, holds.begin[unknown], "right")
    result = _filled(lowest.tolist(), highest.tolist(), token)
    return np.array(result) if isinstance(result, list) else int(unknown[result])


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
    """How many tokens are free between two known ones; without a limit at both ends."""
    if place in (0, len(token)):
        return 1 << 60
    return max(int(token[place]) - int(token[place - 1]) - 1, 0)


def misplaced(holds: SweepHolds) -> Iterator[Collision]:
    """The earliest hold of one key whose token is out of order, if there is any."""
    known = np.flatnonzero(holds.token != NO_TOKEN)
    order = known[np.argsort(holds.token[known], kind="stable")]
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
    """Why the token is wrong; empty if both were held at once."""
    if lower == higher:
        return f"token {lower} was granted twice"
    return f"token {lower} is lower than {higher}, but was held later" if late else ""
