"""ZooKeeper's shared lock, as its documentation has it: readers together, writers alone.

A queue of ephemeral, numbered nodes, named `read-` or `write-`. A writer waits until it has the
lowest number of all; a reader only until no writer has a lower one. No client is overtaken: a
reader that comes after a waiting writer waits behind it.
"""

from __future__ import annotations

from dataclasses import replace

from lockcheck.backends.base import Mode, Promises
from lockcheck.backends.expected import SHORT, Expected
from lockcheck.backends.expected_usual import KEPT_ALIVE
from lockcheck.backends.zookeeper.zookeeper_nodes import ENDED_BY, MEMBERS, on_zookeeper
from lockcheck.backends.zookeeper.zookeeper_queue import QueueLock

READ, WRITE = "-read-", "-write-"


class ZooKeeperSharedLock(QueueLock):
    def _kind(self, mode: Mode) -> str:
        return READ if mode is Mode.SHARED else WRITE

    def _rivals(self, mode: Mode) -> tuple[str, ...]:
        return (WRITE,) if mode is Mode.SHARED else (READ, WRITE)


ALONE = ("--workload", "register")  # writers only: a late reader harms no data

EXPECTED = (
    Expected("none", "ok", SHORT),
    # A stopped reader reads on beside a writer, and the other way round.
    Expected("pause", "violation", findings=("overlap",), blame="holder"),
    *(replace(each, options=(*each.options, *ALONE)) for each in KEPT_ALIVE),
)

BACKEND = on_zookeeper(
    name="zookeeper-rw",
    summary=f"{MEMBERS} servers, a queue of readers and writers, as ZooKeeper's recipe",
    promises=Promises(
        session=True, fencing=True, fair=True, shared=True, waits=True, tells_validity=False
    ),
    connect=ZooKeeperSharedLock,
    workload="readers",
    ended_by=ENDED_BY,
    expected=EXPECTED,
)
