"""Locks whose servers are etcd."""

from __future__ import annotations

from lockcheck.checker.finding import Code
from lockcheck.yours.museum.exhibit import Exhibit, Whose

ETCD3 = {
    "client": "etcd/etcd3_lock.py:Asked",
    "requirements": ("etcd3==0.12.0", "protobuf==3.20.3", "tenacity==6.1.0"),
    "servers": "etcd",
    "promises": ("waits",),
}
ETCD3GW = {
    "requirements": ("etcd3gw==2.7.0",),
    "servers": "etcd",
    "ttl_ms": 5000,
}
TOOZ = {
    "requirements": ("tooz==9.1.0", "etcd3gw==2.7.0"),
    "servers": "etcd",
    "promises": ("waits", "renews"),
    "ttl_ms": 6000,
    "think_ms": 1500,
    "time_limit_ms": 20_000,
    "clients": 3,
}
AETCD = {
    "requirements": ("aetcd==1.0.0", "protobuf==6.33.0"),
    "servers": "etcd",
    "promises": ("waits",),
}

EXHIBITS = {
    "etcd3-py": Exhibit(
        library="etcd3-py 0.1.6",
        shows="clients that find the lock free at the same time are all granted it",
        settings={
            "client": "etcd/etcd3_py_lock.py:Waiting",
            "requirements": ("etcd3-py==0.1.6", "urllib3==1.26.20"),
            "servers": "etcd",
            "promises": ("session", "waits"),
            "ttl_ms": 2000,  # its shortest lease
        },
        control={**ETCD3, "backend": "etcd3", "ttl_ms": 3000},
        controls="etcd3 0.12.0, another library, whose transaction asks that there is no such key",
        findings=(Code.OVERLAP, Code.LOST_UPDATE),
        whose=Whose.BUG,
        file="etcd3/stateful/lock.py",
        line="txn.If(txn.key(self.lock_key).value == self.uuid)",
        why="the transaction writes the key unless its value is this client's own: also over that "
        "of another client that was a moment faster",
    ),
    "etcd3-with": Exhibit(
        library="etcd3 0.12.0",
        shows="who has waited for ten seconds in `with` is let in without the lock",
        settings={
            **ETCD3,
            "client": "etcd/etcd3_lock.py:Entered",
            "ttl_ms": 20_000,
            "think_ms": 5000,
            "time_limit_ms": 16_000,
        },
        control={"think_ms": 200, "time_limit_ms": 6000},
        controls="the work is short, so that no client waits for that long",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="etcd3/locks.py",
        line="    def __enter__(self):\n        self.acquire()\n",
        why="`acquire` gives up after its usual timeout of ten seconds and returns False, at which "
        "`__enter__` does not look. With a tenacity of today it does not even wait: `TypeError`",
        word="their issue #599, of 2018, is open",
    ),
    "etcd3gw-with": Exhibit(
        library="etcd3gw 2.7.0",
        shows="`with` lets every client in, whether it got the lock or not",
        settings=ETCD3GW | {"client": "etcd/etcd3gw_lock.py:Entered"},
        control={"client": "etcd/etcd3gw_lock.py:Asked"},
        controls="`acquire()`, whose answer is looked at",
        findings=(Code.OVERLAP, Code.LOST_UPDATE),
        whose=Whose.BUG,
        file="etcd3gw/lock.py",
        line="        self.acquire()\n        return self",
        why="`acquire` tries once and returns False where the lock is held, at which `__enter__` "
        "does not look",
    ),
    "tooz-etcd-timeout": Exhibit(
        library="tooz 9.1.0",
        shows="`acquire(timeout=1)` is granted a lock of one second, whatever its `lock_timeout`",
        settings=TOOZ | {"client": "etcd/tooz_lock.py:WithTimeout"},
        control={"client": "etcd/tooz_lock.py:Waiting"},
        controls="`acquire(blocking=1.0)`, which is how else it waits",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="tooz/drivers/etcd3gw.py",
        line="self._lease = self._coord.client.lease(timeout)",
        why="how long to wait is taken for how long to hold",
    ),
    "aetcd-with": Exhibit(
        library="aetcd 1.0.0",
        shows="who has waited for ten seconds in `async with` is let in without the lock",
        settings=AETCD
        | {
            "client": "etcd/aetcd_lock.py:Entered",
            "ttl_ms": 20_000,
            "think_ms": 5000,
            "time_limit_ms": 16_000,
        },
        control={"client": "etcd/aetcd_lock.py:Asked", "think_ms": 200, "time_limit_ms": 6000},
        controls="`acquire()`, whose answer is looked at",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="aetcd/locks.py",
        line="        await self.acquire()\n        return self",
        why="`acquire` gives up after its usual timeout of ten seconds and returns False, at which "
        "`__aenter__` does not look",
        word="it is a fork of etcd3, whose issue #599 is open",
    ),
}
