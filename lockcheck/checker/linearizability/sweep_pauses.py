"""Holds that a client interrupted, as far as it could tell: between two confirmed operations of
one hold it asked for a release and then for the lock again, and nobody confirmed either.

Nothing forces these two to have happened, but with them the lock was free in between, and nobody
is kept out by more. So a first try takes them as done, unless the client needs them elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lockcheck.checker.linearizability.sweep_clients import Clients, Flags, Spots
from lockcheck.checker.linearizability.sweep_holds import Breaks
from lockcheck.history.table import Op


@dataclass(frozen=True, slots=True)
class Pauses:
    spot: Spots  # of the marks after which they come, in order
    released: Spots
    acquired: Spots

    def __len__(self) -> int:
        return len(self.spot)

    def take(self, which: Flags) -> Pauses:
        return Pauses(self.spot[which], self.released[which], self.acquired[which])

    def spent(self, clients: Clients) -> Clients:
        """The clients with what is left for other explanations."""
        if len(self) == 0:
            return clients
        return replace(
            clients,
            maybe_acquired=np.setdiff1d(clients.maybe_acquired, self.acquired, True),
            maybe_released=np.setdiff1d(clients.maybe_released, self.released, True),
        )

    def without(self, clients: Clients, lacking: Spots) -> Pauses:
        """Without those of the clients to which something was lacking."""
        own = clients.client(self.spot)
        return self.take(~np.isin(own, clients.client(lacking)))

    def added(self, clients: Clients, breaks: Breaks) -> Breaks:
        here = self.take(~breaks.after[np.searchsorted(clients.marks, self.spot)])
        if len(here) == 0:
            return breaks
        mark = np.searchsorted(clients.marks, here.spot)
        after = breaks.after.copy()
        after[mark] = True
        at = np.searchsorted(breaks.special, mark)
        return replace(
            breaks,
            after=after,
            special=np.insert(breaks.special, at, mark),
            end=np.insert(breaks.end, at, clients.start[here.released]),
            cut=np.insert(breaks.cut, at, here.released),
        )


NONE = Pauses(*(np.zeros(0, np.intp),) * 3)


def pauses(clients: Clients) -> Pauses:
    marks, released, acquired = clients.marks, clients.maybe_released, clients.maybe_acquired
    if len(marks) < 2 or len(released) == 0 or len(acquired) == 0:
        return NONE
    again = np.searchsorted(acquired, released)
    again_at = np.append(acquired, len(clients.row))[again]
    mark = np.searchsorted(marks, released) - 1
    following = np.minimum(mark + 1, len(marks) - 1)
    fine = (mark >= 0) & (again_at < marks[following])
    fine &= clients.client(marks[mark]) == clients.client(marks[following])
    fine &= (clients.f[marks[mark]] != Op.RELEASE) & (clients.f[marks[following]] != Op.ACQUIRE)
    found = Pauses(mark[fine], released[fine], again_at[fine])
    _, first = np.unique(found.spot, return_index=True)
    return Pauses(marks[found.spot[first]], found.released[first], found.acquired[first])
