"""Collisions that spare unconfirmed operations explain: a hold is interrupted for the other one.

A client that went on may have a release and an acquire to spare that nobody confirmed. Where two
holds collide, taking them as done within one of the holds lets the other in. That is tried for one
collision after the other: when none is left there is an order, and if not nothing was proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lockcheck.checker.linearizability.sweep_believed import believed
from lockcheck.checker.linearizability.sweep_clients import Clients
from lockcheck.checker.linearizability.sweep_holds import Holds, Trouble
from lockcheck.checker.linearizability.sweep_order import Collision
from lockcheck.checker.linearizability.sweep_pauses import NONE, Pauses
from lockcheck.history.table import Op

ROUNDS = 8  # each costs as much as a sweep

NO_COLLISION = Collision(-1, -1, 0)  # it does not work, but not because of two holds
Explain = Callable[[Clients, Pauses], tuple[Holds, Trouble]]
Find = Callable[[Holds], Collision | None]


def repaired(clients: Clients, explain: Explain, find: Find) -> bool:
    """Whether some interruptions leave no collision of the holds of one key."""
    paused = NONE
    holds, trouble = explain(clients, paused)
    for _ in range(ROUNDS):
        collision = None if len(trouble) else find(holds)
        if collision is None or collision == NO_COLLISION:
            return collision is None and len(trouble) == 0
        for more in _interrupted(clients, paused, holds, collision):
            paused = more
            holds, trouble = explain(clients, paused)
            if len(trouble) == 0:
                break
        else:
            return False
    return False


def _interrupted(
    clients: Clients, paused: Pauses, holds: Holds, collision: Collision
) -> Iterator[Pauses]:
    released = np.setdiff1d(clients.maybe_released, believed(clients))
    released = np.setdiff1d(released, paused.released)
    acquired = clients.maybe_acquired[_unanswered(clients)]
    acquired = np.setdiff1d(acquired, paused.acquired)
    for which, other in ((collision.one, collision.other), (collision.other, collision.one)):
        first, last = int(holds.first[which]), int(holds.last[which])
        begin = clients.starts[clients.client(holds.first[[which]])[0]]
        soon = clients.start[released] <= holds.begin[other]
        ends = released[(released >= begin) & (released < last) & soon]
        anew = acquired[(acquired >= begin) & (acquired < last)]
        if _simple(clients, first, last) and len(ends) and len(anew):
            at = int(np.searchsorted(paused.spot, first))
            for one in (anew[-1], anew[0]):
                yield Pauses(
                    np.insert(paused.spot, at, first),
                    np.insert(paused.released, at, ends[0]),
                    np.insert(paused.acquired, at, one),
                )


def _unanswered(clients: Clients) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which unconfirmed acquires do not seem to explain what the client did next."""
    acquired = clients.maybe_acquired
    following = np.minimum(acquired + 1, len(clients.row) - 1)
    return np.isin(following, clients.marks, invert=True) | np.equal(
        clients.f[following], Op.ACQUIRE
    )


def _simple(clients: Clients, first: int, last: int) -> bool:
    """Whether the hold is an acquire and its release, with nothing confirmed in between."""
    if clients.f[first] != Op.ACQUIRE or clients.f[last] != Op.RELEASE:
        return False
    at = int(np.searchsorted(clients.marks, first))
    return at + 1 < len(clients.marks) and int(clients.marks[at + 1]) == last
