"""Locks on Redis whose clients are in Rust."""

from __future__ import annotations

from lockcheck.checker.finding import Code
from lockcheck.yours.museum.exhibit import Exhibit, Whose

EXHIBITS = {
    "distributed-lock": Exhibit(
        library="distributed-lock-redis 0.2.0 (Rust)",
        shows="a reader and a writer that come at the same time are both let in",
        settings={
            "client": "redis/distributed_lock/client.rs:ReaderWriter",
            "promises": ("shared", "renews"),
            "ttl_ms": 2000,
        },
        control={"client": "redis/distributed_lock/client.rs:Exclusive", "promises": ("renews",)},
        controls="its exclusive lock, which is one `SET NX PX`",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="distributed-lock-redis-0.2.0/src/rw_lock.rs",
        line="let writer_exists: bool = client.exists(&self.writer_key).await",
        why="a reader looks for a writer, and then adds itself; a writer looks for readers, and "
        "then sets its key. Between these requests the other one comes in",
    ),
    "redis-lock-rust": Exhibit(
        library="redis-lock 0.5.1 (Rust)",
        shows="the lock of a client that died stays held for a thousand times its `expiration`",
        settings={
            "client": "redis/redis_lock_rs/client.rs:Asked",
            "promises": ("silent-release",),
            "nemesis": ("kill:holder",),
        },
        control={"client": "redis/redis_lock_rs/client.rs:Thousandth"},
        controls="a thousandth of that `expiration`",
        findings=(Code.STUCK,),
        whose=Whose.BUG,
        file="redis-lock-0.5.1/src/functions.lua",
        line='redis.call("SET", lock_key, lock_info, "EX", expiration)',
        why="`expiration` comes in milliseconds (`as_millis`), and `EX` counts seconds",
    ),
}
