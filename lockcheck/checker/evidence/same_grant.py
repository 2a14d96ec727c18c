"""One token, granted twice to one client: is it one grant, or two?

It is one if the client never gave its lock back in between: a request that was sent again after its
answer was lost, or a lock that goes with a session, is answered with the grant that is there. No
guard has to tell the two apart, since both are that client's hold. After a release, a new grant
with the old token is a mistake: what was written under the hold before passes every guard. If
another client was granted the lock in between, its token has to be higher, and the old one is a
mistake, too.
"""

from __future__ import annotations

import numpy as np

from lockcheck.checker.evidence.releases import gave_back
from lockcheck.history import Hold, Terms
from lockcheck.history.ordering import order_by
from lockcheck.history.table import NO_TOKEN, Ints, Mask, Op, Outcome, Table


def same_grant(terms: Terms, one: Hold, other: Hold) -> bool:
    """Whether two holds with one token may be one grant. In a part of a longer log the client may
    have been inside on more levels than the log shows, unless its terms exclude that."""
    left = gave_back(one.release, terms)
    left &= not (terms.partial and (terms.reentrant or not terms.model))
    return one.process == other.process and not left


def granted_again(table: Table, terms: Terms) -> Mask:
    """The acquires that were answered with the grant that their client had."""
    again = np.zeros(len(table), np.bool_)
    granted = (table.f == Op.ACQUIRE) & (table.outcome == Outcome.OK)
    rows = np.flatnonzero(granted & (table.token != NO_TOKEN))
    rows = rows[order_by(table.key[rows], table.process[rows])]
    if not _repeats(table, rows).any():
        return again
    left = (table.f == Op.RELEASE) & (table.outcome == Outcome.OK) & ~table.unsaid
    rows = np.flatnonzero(granted | (left & terms.tells_release))
    rows = rows[order_by(table.key[rows], table.process[rows])]
    again[rows[1:][_repeats(table, rows)]] = True
    return again


def _repeats(table: Table, rows: Ints) -> Mask:
    """Which rows, but for the first, are grants with the token of the client's grant before."""
    one, other = rows[:-1], rows[1:]
    same = table.same_client(one, other) & (table.token[one] == table.token[other])
    same &= (table.f[one] == Op.ACQUIRE) & (table.f[other] == Op.ACQUIRE)
    found: Mask = same & (table.token[other] != NO_TOKEN)
    return found
