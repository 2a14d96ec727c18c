"""Locks on ZooKeeper whose clients are in Rust."""

from __future__ import annotations

from lockcheck.checker.finding import Code
from lockcheck.yours.museum.exhibit import Exhibit, Whose
from lockcheck.yours.museum.exhibits.zookeeper import KAZOO

EXHIBITS = {
    "dist-lock": Exhibit(
        library="dist_lock 0.0.1 (Rust)",
        shows="clients that find the lock free at the same time are all granted it",
        settings={
            "client": "zookeeper/dist_lock/client.rs:OnZooKeeper",
            "servers": "zookeeper",
            "promises": ("silent-release",),
            "ttl_ms": 2000,
        },
        control={**KAZOO, "client": "zookeeper/kazoo_lock.py:Heard", "backend": "kazoo"},
        controls="kazoo 2.11.0, another library, whose nodes have an order",
        findings=(Code.OVERLAP, Code.LOST_UPDATE),
        whose=Whose.BUG,
        file="dist_lock-0.0.1/src/provider/zookeeper.rs",
        line="if !self.check_locked(&path, config)? {",
        why="it reads the node, and then sets its data whatever version they have by then; a "
        "release deletes the node of any holder",
    ),
}
