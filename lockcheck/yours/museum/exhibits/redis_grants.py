"""Locks on Redis that are granted to two, or to no one any more."""

from __future__ import annotations

from lockcheck.checker.finding import Code, Culprit
from lockcheck.yours.museum.exhibit import Exhibit, Whose
from lockcheck.yours.museum.exhibits.redis import REDIS_PY

EXHIBITS = {
    "redis-semaphore-async": Exhibit(
        library="redis-semaphore-async 0.0.4",
        shows="a waiter that is woken goes in beside the client that was faster",
        settings={
            "client": "redis/redis_semaphore_async_lock.py:OfOne",
            "requirements": ("redis-semaphore-async==0.0.4",),
            "promises": ("waits", "silent-release"),
        },
        control={
            "backend": "redis-semaphore-0.2.2",
            "client": "redis/redis_semaphore_lock.py:ByItsOwnClock",
            "requirements": ("redis-semaphore==0.2.2", "redis==3.5.3"),
            "promises": ("silent-release",),
        },
        controls="redis-semaphore 0.2.2, another library, whose permits are items of a list",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="redis_semaphore_async/main.py",
        line="await self.redis.rpop(self._waiters_key)",
        why="who is woken counts down without looking whether a permit is still there",
    ),
    "redis-rw-lock": Exhibit(
        library="redis-rw-lock 1.0.6",
        shows="a writer is let in beside readers, one `expire` after the first of them came",
        settings={
            "client": "redis/redis_rw_lock_lock.py:Leased",
            "requirements": ("redis-rw-lock==1.0.6", "python-redis-lock==4.0.1", "redis==5.2.1"),
            "promises": ("waits", "shared", "silent-release"),
            "think_ms": 500,
            "time_limit_ms": 15_000,
        },
        control={"think_ms": 10},
        controls="the work is short, so that readers do not relieve each other",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="redis_rw_lock/__init__.py",
        line="if counter_value == 1:",
        why="only the first reader sets the lock that keeps writers out; it is not renewed for "
        "those that come later",
    ),
    "redis-py-clock": Exhibit(
        library="redis 2.9.1",
        shows="a client whose clock is ahead takes the lock from its holder",
        settings={
            "backend": "redis-py",
            "client": "redis/old_redis_py_lock.py:ByTheClock",
            "requirements": ("redis==2.9.1",),
            "promises": ("silent-release",),
            "nemesis": ("clock:client",),
            "think_ms": 100,
            "time_limit_ms": 10_000,
        },
        control={
            "client": "redis/redis_py_lock.py:Leased",
            "requirements": REDIS_PY["requirements"],
        },
        controls="redis 8.1.0, whose lease its server counts, under the same fault",
        findings=(Code.OVERLAP,),
        whose=Whose.WARNED,
        file="redis/client.py",
        line="# the previous lock is expired, attempt to overwrite it",
        why="the key has the time until which it is locked, and each client looks at its own clock "
        "to see whether that is over",
        word='its docstring: "you should make sure all the hosts that are running clients have '
        'their time synchronized"; 2.10 has another lock',
    ),
    "redis-py-reacquire": Exhibit(
        library="redis 8.1.0",
        shows="with `timeout=0`, `reacquire()` deletes the lock, and answers that it is held",
        settings=REDIS_PY
        | {
            "client": "redis/redis_py_lock.py:Renewed",
            "promises": ("renews",),
            "think_ms": 600,
            "time_limit_ms": 10_000,
        },
        control={"client": "redis/redis_py_lock.py:LeasedAndRenewed"},
        controls="`timeout` is the lease",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="redis/lock.py",
        line="        timeout = int(self.timeout * 1000)\n        if not bool(",
        why="its script sends `PEXPIRE key 0`, which deletes the key",
        word="their issue #4279",
    ),
    "portalocker": Exhibit(
        library="portalocker 4.1.0",
        shows="a holder that was cut off goes on when its lock has gone to the next one",
        settings={
            "client": "redis/portalocker_lock.py:Unheard",
            "requirements": ("portalocker==4.1.0", "redis==8.1.0"),
            "promises": ("session",),
            "nemesis": ("partition:holder",),
            "ttl_ms": 2000,
            "think_ms": 6000,
            "clients": 2,
            "time_limit_ms": 20_000,
            "stop_on_violation": False,
        },
        control={
            "requirements": ("portalocker==4.4.2", "redis==8.1.0"),
            "nemesis": ("none",),
            "think_ms": 200,
        },
        controls="portalocker 4.4.2, and no fault",
        findings=(Code.SILENT_LOSS,),
        blame=Culprit.HOLDER,
        whose=Whose.GAP,
        file="portalocker/redis.py",
        line="_thread.interrupt_main()",
        why="who asks for the lock ends the connection of a holder that does not answer. That is "
        "to raise here, but redis-py connects and subscribes again by itself",
        word="their issue #137; from 4.2.0 on its holder learns of it. Without a fault, 4.1.0 lets "
        "two in now and then, too: their issues #139 and #145",
    ),
}
