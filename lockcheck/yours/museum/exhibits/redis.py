"""Locks whose servers are Redis."""

from __future__ import annotations

from lockcheck.checker.finding import Code, Culprit
from lockcheck.yours.museum.exhibit import Exhibit, Whose

SHERLOCK = {
    "client": "redis/sherlock_lock.py:Expiring",
    "requirements": ("sherlock==0.4.1", "redis==4.6.0"),
}
REDIS_PY = {
    "backend": "redis-py",  # on the index it is called as the server is
    "client": "redis/redis_py_lock.py:Entered",
    "requirements": ("redis==8.1.0",),
}
CELERY_SINGLETON = {
    "client": "redis/celery_singleton_lock.py:OfATask",
    "requirements": ("celery-singleton==0.3.1", "celery==5.5.3", "redis==5.2.1"),
    "promises": ("blind-release", "silent-release"),
}
SEMAPHORE = {
    "backend": "redis-semaphore-0.2.2",  # lockcheck has a lock of that name
    "client": "redis/redis_semaphore_lock.py:OfOne",
    "requirements": ("redis-semaphore==0.2.2", "redis==3.5.3"),
    "think_ms": 500,
    "time_limit_ms": 8000,
}
REDIS_LOCK = {
    "client": "redis/redis_lock_lock.py:Renewed",
    "requirements": ("python-redis-lock==4.0.1", "redis==5.2.1"),
    "promises": ("renews",),
    "clients": 3,
}

EXHIBITS = {
    "sherlock-renew": Exhibit(
        library="sherlock 0.4.0",
        shows="renewing the lock releases it, and answers that it was renewed",
        settings={
            "client": "redis/sherlock_lock.py:Renewed",
            "requirements": ("sherlock==0.4.0", "redis==4.6.0"),
            "promises": ("renews",),
            "think_ms": 600,
            "time_limit_ms": 10_000,
        },
        control={"requirements": SHERLOCK["requirements"]},
        controls="sherlock 0.4.1, where `_renew` calls the script that renews",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="sherlock/lock.py",
        line="self._release_func(keys=[self._key_name], args=[self._owner, self.expire])",
        why="`_renew` calls the script of `_release`, whose answer is 1, too",
        word="their issue #66; 0.4.1 changes that line",
    ),
    "sherlock-forever": Exhibit(
        library="sherlock 0.4.1",
        shows="with `expire=None` there is no lock at all: every client is let in",
        settings={**SHERLOCK, "client": "redis/sherlock_lock.py:Forever"},
        control=SHERLOCK,
        controls="`expire` is the lease",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="sherlock/lock.py",
        line="if result == 1 and ARGV[2] ~= -1 then",
        why="in Lua the text `-1` is not the number -1, so the script sends `EXPIRE key -1`, which "
        "deletes the key that it has just set",
        word='its docstring: "If explicitly set to `None`, lock will not expire"; their pull '
        "request #37 was to bring that about",
    ),
    "redis-py-with": Exhibit(
        library="redis 2.10.6",
        shows="who has waited in `with` for its `blocking_timeout` is let in without the lock",
        settings={**REDIS_PY, "requirements": ("redis==2.10.6",), "ttl_ms": 5000, "think_ms": 1000}
        | {"time_limit_ms": 12_000},
        control=REDIS_PY,
        controls="redis 8.1.0, whose `__enter__` raises LockError then",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="redis/lock.py",
        line="self.acquire(blocking=True)",
        why="`acquire` returns False after the timeout, at which `__enter__` does not look",
        word="their issue #621; from 3.0 on LockError is raised there",
    ),
    "celery-singleton": Exhibit(
        library="celery-singleton 0.3.1",
        shows="a task that ends after its lock has run out removes that of another one",
        settings=CELERY_SINGLETON | {"think_ms": 1000, "time_limit_ms": 10_000},
        control={"think_ms": 10},
        controls="the tasks are short, so that no lock runs out before its task ends",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="celery_singleton/backends/redis.py",
        line="self.redis.delete(lock)",
        why="the key has the id of its task, at which `unlock` does not look",
    ),
    "redis-semaphore": Exhibit(
        library="redis-semaphore 0.2.2",
        shows="a permit is taken away after a fraction of its `stale_client_timeout`",
        settings=SEMAPHORE,
        control={"client": "redis/redis_semaphore_lock.py:ByItsOwnClock"},
        controls="`is_use_local_time`, with which it does not read the server's clock",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="redis_semaphore/__init__.py",
        line="return float('.'.join(map(str, self.client.time())))",
        why="seconds and microseconds are joined as text: 12 s and 5000 us are 12.5000, so in the "
        "first tenth of each second the time is up to 0.9 s ahead",
    ),
    "python-redis-lock": Exhibit(
        library="python-redis-lock 4.0.1",
        shows="a holder whose lock could not be renewed goes on for as long as it likes",
        settings=REDIS_LOCK
        | {"nemesis": ("partition:holder",), "think_ms": 4000, "time_limit_ms": 15_000},
        control={"nemesis": ("none",), "think_ms": 1000},
        controls="no fault: its thread renews the lock for longer than its lease",
        findings=(Code.SILENT_LOSS, Code.OVERLAP),
        blame=Culprit.HOLDER,
        whose=Whose.GAP,
        file="redis_lock/__init__.py",
        line="lock.extend(expire=lock._expire)",
        why="the first failure ends the thread that renews, with a traceback on standard error; "
        "only the release raises `NotAcquired`",
    ),
    "redis-py-forever": Exhibit(
        library="redis 8.1.0",
        shows="with `timeout=None`, its default, the lock of a client that died stays held",
        settings=REDIS_PY
        | {"client": "redis/redis_py_lock.py:Forever", "nemesis": ("kill:holder",)},
        control={"client": "redis/redis_py_lock.py:Leased"},
        controls="`timeout` is the lease",
        findings=(Code.STUCK,),
        whose=Whose.OPTION,
        file="redis/lock.py",
        line="if self.redis.set(self.name, token, nx=True, px=timeout):",
        why="without a timeout the key has no time to live",
        word='its docstring: "By default, it will remain locked until release() is called"',
    ),
    "redlock-py": Exhibit(
        library="redlock-py 1.0.8",
        shows="a holder that was paused for longer than its lease goes on beside the next one",
        settings={
            "client": "redis/redlock_py_lock.py:Majority",
            "requirements": ("redlock-py==1.0.8", "redis==5.2.1"),
            "servers": "redis*3",
            "promises": ("silent-release",),
            "nemesis": ("pause",),
        },
        control={"nemesis": ("none",)},
        controls="no fault",
        findings=(Code.OVERLAP,),
        blame=Culprit.HOLDER,
        whose=Whose.LIMIT,
        file="redlock/__init__.py",
        line="return Lock(validity, resource, val)",
        why="the validity is what was left when the lock was granted; a client that is paused "
        "later does not notice, and no lock with a lease can help that",
    ),
    "pottery": Exhibit(
        library="pottery 3.0.1",
        shows="a holder that was paused for longer than its lease goes on beside the next one",
        settings={
            "client": "redis/pottery_lock.py:Majority",
            "requirements": ("pottery==3.0.1", "redis==5.2.1"),
            "servers": "redis*3",
            "nemesis": ("pause",),
        },
        control={"nemesis": ("none",)},
        controls="no fault",
        findings=(Code.OVERLAP,),
        blame=Culprit.HOLDER,
        whose=Whose.LIMIT,
        file="pottery/redlock.py",
        line="px=int(self.auto_release_time * 1000),",
        why="the key has a lease, which ends although its holder stands still and does not notice",
        word='its documentation: "You should take care to ensure that your critical section '
        'completes well within the timeout"',
    ),
}
