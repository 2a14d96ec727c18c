"""Locks whose servers are ZooKeeper."""

from __future__ import annotations

from lockcheck.checker.finding import Code, Culprit
from lockcheck.yours.museum.exhibit import Exhibit, Whose

KAZOO = {
    "client": "zookeeper/kazoo_lock.py:Unheard",
    "requirements": ("kazoo==2.11.0",),
    "servers": "zookeeper",
    "promises": ("session", "waits", "fair"),
}
AIOZK = {
    "requirements": ("aiozk==0.32.0",),
    "servers": "zookeeper",
    "ttl_ms": 2000,
}

EXHIBITS = {
    "kazoo": Exhibit(
        library="kazoo 2.11.0",
        shows="a holder that is cut off goes on when its session is over",
        settings=KAZOO
        | {
            "nemesis": ("partition:holder",),
            "ttl_ms": 2000,
            "think_ms": 2000,
            "time_limit_ms": 15_000,
        },
        control={"client": "zookeeper/kazoo_lock.py:Heard"},
        controls="with such a listener, by which the holder learns of it in time",
        findings=(Code.OVERLAP,),
        blame=Culprit.HOLDER,
        whose=Whose.GAP,
        file="kazoo/recipe/lock.py",
        line="It's highly recommended to add a state listener with",
        why="the lock itself watches no session once it is acquired, and `with zk.Lock(...)` alone "
        "adds no listener",
        word="that line of its documentation",
    ),
    "aiozk-lease": Exhibit(
        library="aiozk 0.32.0",
        shows="clients that find its Lease free at the same time are all granted it",
        settings=AIOZK | {"client": "zookeeper/aiozk_lock.py:Leased"},
        control={"client": "zookeeper/aiozk_lock.py:Waiting", "promises": ("session", "waits")},
        controls="its Lock, which is a queue of numbered nodes",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="aiozk/recipes/lease.py",
        line="if len(lessees) >= self.limit:",
        why="the lessees are counted first, and its node is created afterwards",
    ),
}
