"""Locks on Redis whose release removes whatever lock is there."""

from __future__ import annotations

from lockcheck.checker.finding import Code
from lockcheck.yours.museum.exhibit import Exhibit, Whose

BLIND = {"promises": ("blind-release", "silent-release")}
SHORT = "the work is short, so that no lock runs out before its release"

EXHIBITS = {
    "dramatiq": Exhibit(
        library="dramatiq 2.2.1",
        shows="a task that is longer than the mutex's `ttl` lets two others in when it ends",
        settings={
            "client": "redis/dramatiq_lock.py:OfOne",
            "requirements": ("dramatiq==2.2.1", "redis==5.2.1"),
            "promises": ("silent-release",),
            "think_ms": 1000,
            "time_limit_ms": 10_000,
        },
        control={"think_ms": 10},
        controls=SHORT,
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="dramatiq/rate_limits/concurrent.py",
        line="return self.backend.decr(self.key, 1, minimum=0, ttl=self.ttl)",
        why="the counter does not say whose it is: a late release counts down what another task "
        "has counted up",
    ),
    "celery-once": Exhibit(
        library="celery-once 3.0.1",
        shows="a task that ends after its lock has run out removes that of another one",
        settings={
            "client": "redis/celery_once_lock.py:OfATask",
            "requirements": ("celery-once==3.0.1", "celery==5.5.3", "redis==5.2.1", "six==1.17.0"),
            **BLIND,
            "think_ms": 1000,
            "time_limit_ms": 10_000,
        },
        control={"think_ms": 10},
        controls=SHORT,
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="celery_once/backends/redis.py",
        line="return self.redis.delete(key)",
        why="the lock's token is thrown away once it is set, and `clear_lock` looks at none",
    ),
    "huey": Exhibit(
        library="huey 3.5.4",
        shows="a task that ends after its lock has run out removes that of another one",
        settings={
            "client": "redis/huey_lock.py:OfATask",
            "requirements": ("huey==3.5.4", "redis==5.2.1"),
            **BLIND,
            "think_ms": 1000,
            "time_limit_ms": 10_000,
        },
        control={"think_ms": 10},
        controls=SHORT,
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="huey/api.py",
        line="exc_val, exc_tb):\n        self._huey.delete(self._key)",
        why="all tasks write the same value, `1`, so that a release cannot tell whose it is",
    ),
    "redis-py-getset": Exhibit(
        library="redis 2.9.1",
        shows="who releases after its lock has run out removes that of another one",
        settings={
            "backend": "redis-py",
            "client": "redis/old_redis_py_lock.py:ByTheClock",
            "requirements": ("redis==2.9.1",),
            "promises": ("silent-release",),
            "think_ms": 1000,
            "time_limit_ms": 10_000,
        },
        control={"think_ms": 10},
        controls=SHORT,
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="redis/client.py",
        line="delete_lock = existing >= self.acquired_until",
        why="the key has the time until which it is locked. That of a later owner is later, so "
        "this is true for its lock, too",
        word="their issue #415; 2.10 has another lock",
    ),
}
