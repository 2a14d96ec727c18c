"""The exhibits, by name."""

from __future__ import annotations

from lockcheck.checker.finding import Code, Culprit
from lockcheck.yours.museum.exhibit import Exhibit, Whose

SHERLOCK = {
    "client": "sherlock_lock.py:Expiring",
    "requirements": ("sherlock==0.4.1", "redis==4.6.0"),
}
ETCD3 = {
    "client": "etcd3_lock.py:Asked",
    "requirements": ("etcd3==0.12.0", "protobuf==3.20.3", "tenacity==6.1.0"),
    "servers": "etcd",
    "promises": ("waits",),
}
REDIS_PY = {
    "backend": "redis-py",  # on the index it is called as the server is
    "client": "redis_py_lock.py:Entered",
    "requirements": ("redis==8.1.0",),
}
CELERY_SINGLETON = {
    "client": "celery_singleton_lock.py:OfATask",
    "requirements": ("celery-singleton==0.3.1", "celery==5.5.3", "redis==5.2.1"),
    "promises": ("blind-release", "silent-release"),
}
SEMAPHORE = {
    "backend": "redis-semaphore-0.2.2",  # lockcheck has a lock of that name
    "client": "redis_semaphore_lock.py:OfOne",
    "requirements": ("redis-semaphore==0.2.2", "redis==3.5.3"),
    "think_ms": 500,
    "time_limit_ms": 8000,
}
REDIS_LOCK = {
    "client": "redis_lock_lock.py:Renewed",
    "requirements": ("python-redis-lock==4.0.1", "redis==5.2.1"),
    "promises": ("renews",),
    "clients": 3,
}
KAZOO = {
    "client": "kazoo_lock.py:Unheard",
    "requirements": ("kazoo==2.11.0",),
    "servers": "zookeeper",
    "promises": ("session", "waits", "fair"),
}

EXHIBITS = {
    "sherlock-renew": Exhibit(
        library="sherlock 0.4.0",
        shows="renewing the lock releases it, and answers that it was renewed",
        settings={
            "client": "sherlock_lock.py:Renewed",
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
        word="0.4.1 changes that line",
    ),
    "sherlock-forever": Exhibit(
        library="sherlock 0.4.1",
        shows="with `expire=None` there is no lock at all: every client is let in",
        settings={**SHERLOCK, "client": "sherlock_lock.py:Forever"},
        control=SHERLOCK,
        controls="`expire` is the lease",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="sherlock/lock.py",
        line="if result == 1 and ARGV[2] ~= -1 then",
        why="in Lua the text `-1` is not the number -1, so the script sends `EXPIRE key -1`, which "
        "deletes the key that it has just set",
        word='its docstring: "If explicitly set to `None`, lock will not expire"',
    ),
    "etcd3-py": Exhibit(
        library="etcd3-py 0.1.6",
        shows="clients that find the lock free at the same time are all granted it",
        settings={
            "client": "etcd3_py_lock.py:Waiting",
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
            "client": "etcd3_lock.py:Entered",
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
        word="later versions raise LockError there",
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
        control={"client": "redis_semaphore_lock.py:ByItsOwnClock"},
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
        control={"client": "kazoo_lock.py:Heard"},
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
    "redis-py-forever": Exhibit(
        library="redis 8.1.0",
        shows="with `timeout=None`, its default, the lock of a client that died stays held",
        settings=REDIS_PY | {"client": "redis_py_lock.py:Forever", "nemesis": ("kill:holder",)},
        control={"client": "redis_py_lock.py:Leased"},
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
            "client": "redlock_py_lock.py:Majority",
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
            "client": "pottery_lock.py:Majority",
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
