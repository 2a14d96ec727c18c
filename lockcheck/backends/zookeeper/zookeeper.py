"""ZooKeeper's lock, as kazoo's recipe does it: a queue of nodes that live as long as a session.

A client creates an ephemeral, numbered node. The lowest number holds the lock; each other client
watches the node right before its own.
"""

from __future__ import annotations

from lockcheck.backends.base import Mode, Promises
from lockcheck.backends.expected import forgotten
from lockcheck.backends.expected_usual import DISK_FAILS, FOLLOWER_JUMPS, KEPT_ALIVE, MEMBERS_CUT
from lockcheck.backends.zookeeper.zookeeper_nodes import MEMBERS, on_zookeeper
from lockcheck.backends.zookeeper.zookeeper_queue import QueueLock

CONTENDER = "__lock__"


class ZooKeeperLock(QueueLock):
    def _kind(self, _mode: Mode) -> str:
        return CONTENDER

    def _rivals(self, _mode: Mode) -> tuple[str, ...]:
        return (CONTENDER,)


BACKEND = on_zookeeper(
    name="zookeeper",
    summary=f"{MEMBERS} servers, a queue of ephemeral nodes, as kazoo's recipe",
    promises=Promises(session=True, fencing=True, fair=True, waits=True, tells_validity=False),
    connect=ZooKeeperLock,
    expected=(
        *KEPT_ALIVE,
        *MEMBERS_CUT,
        *DISK_FAILS,
        # Only the leader times sessions. A client that learns at once of the end of its session
        # does no harm, unless it is about to write: there it is kept for a quarter of its TTL.
        forgotten("clock:leader,jump=+30s,for=1s,gap=1s,when=write", ("--ttl", "4s")),
        FOLLOWER_JUMPS,
    ),
)
