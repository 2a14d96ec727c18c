"""A lock on ZooKeeper without a queue: one node, which all clients watch.

The client that creates the ephemeral node holds the lock. When it is deleted, ZooKeeper notifies
all waiting clients, and all try to create it at once: the thundering herd that ZooKeeper's
documentation warns of. Any one of them is let in.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lockcheck.backends.base import Claim, Promises
from lockcheck.backends.expected_usual import KEPT_ALIVE
from lockcheck.backends.zookeeper.zookeeper_nodes import (
    AFTER_A_FAILURE_S,
    ENDED_BY,
    MEMBERS,
    QueueNode,
    SessionLock,
    on_zookeeper,
)
from lockcheck.history import Refusal
from lockcheck.servers.wire import Refused, WireFailure

if TYPE_CHECKING:
    from lockcheck.backends.zookeeper.zookeeper_session import ZooKeeperSession

HELD = "held"


class HerdLock(SessionLock):
    def _enter(self, claim: Claim, session: ZooKeeperSession, folder: str) -> QueueNode:
        path = f"{folder}/{HELD}"
        while claim.left_s() > 0:
            seen = session.changes
            place = self._created(claim, session, path)
            if place is None:
                self._watch(claim, session, path)
            elif session.holds(claim, seen):
                return place
            else:  # the connection was gone for a while, and perhaps the session with it
                self._give_up(place)
        raise Refused(Refusal.HELD, "waited too long")

    def _created(self, claim: Claim, session: ZooKeeperSession, path: str) -> QueueNode | None:
        """None if another client has it."""
        from kazoo.exceptions import NodeExistsError

        try:
            return self._create(claim, session, path)
        except WireFailure as failure:
            if isinstance(failure.cause, NodeExistsError):
                return None
            raise

    def _watch(self, claim: Claim, session: ZooKeeperSession, path: str) -> None:
        try:
            self._await_change(claim, session, path)
        except WireFailure as failure:  # a read: nothing was changed
            if session.over:
                raise Refused(Refusal.GONE, "its session expired while it waited") from failure
            time.sleep(AFTER_A_FAILURE_S)

    def _give_up(self, place: QueueNode) -> None:
        refusal = Refused(Refusal.UNAVAILABLE, "its connection broke")
        self._withdraw(place, refusal)
        raise refusal


BACKEND = on_zookeeper(
    name="zookeeper-herd",
    summary=f"{MEMBERS} servers, one ephemeral node that all clients watch",
    promises=Promises(session=True, fencing=True, waits=True, tells_validity=False),
    connect=HerdLock,
    ended_by=ENDED_BY,
    expected=KEPT_ALIVE,
)
