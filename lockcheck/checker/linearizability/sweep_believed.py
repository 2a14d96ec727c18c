"""What a client itself would believe: each of its unconfirmed releases happened where it had
something to release. For a client that never goes on nothing can be better.

A first try counts these releases as if they had been confirmed, except those of clients whose
other operations need them elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lockcheck.checker.linearizability.sweep_clients import NO_PROMISE, Clients, Flags, Spots
from lockcheck.history.table import Ints, Op


def believed(clients: Clients) -> Spots:
    """The unconfirmed releases that happened then."""
    released = clients.maybe_released
    if len(released) == 0:
        return released
    steps = np.zeros(len(clients.row), np.int64)
    own = clients.f[clients.marks]
    steps[clients.marks] = (own == Op.ACQUIRE).astype(np.int64) - (own == Op.RELEASE)
    steps[released] = -1
    depth = np.cumsum(steps)
    # Walks that stop at nothing: by how much a client's walk would have gone below that so far.
    first = np.zeros(len(depth), bool)
    first[clients.starts] = True
    number = np.cumsum(first) - 1
    depth -= (depth - steps)[clients.starts][number]
    lacking = np.maximum(_bottom(clients) - depth, 0)
    apart = number * (2 * len(depth))
    lent = np.maximum.accumulate(lacking + apart) - apart
    before = np.where(first[released], 0, lent[released - 1])
    happened: Spots = released[lent[released] == before]
    return happened


def _bottom(clients: Clients) -> Ints:
    return np.equal(clients.f, Op.RENEW).astype(np.int64)


def as_confirmed(clients: Clients, happened: Spots) -> Clients:
    if len(happened) == 0:
        return clients
    at = np.searchsorted(clients.marks, happened)
    until = clients.until
    return replace(
        clients,
        marks=np.insert(clients.marks, at, happened),
        until=None if until is None else np.insert(until, at, NO_PROMISE),
        maybe_released=np.setdiff1d(clients.maybe_released, happened, assume_unique=True),
    )


def of_others(clients: Clients, happened: Spots, lacking: Spots) -> Spots:
    """Those of clients to which nothing was lacking."""
    some: Flags = np.isin(clients.client(happened), clients.client(lacking))
    return happened[~some]
