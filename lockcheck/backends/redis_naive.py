"""`SET NX EX` and a blind `DEL`: the lock that many first write, and that many still run."""

from __future__ import annotations

import time

from lockcheck.backends.base import Backend, Grant, LockSettings, Promises, Refused
from lockcheck.backends.redis_server import REDIS_ERRORS, redis_server
from lockcheck.redis_node import RedisNode
from lockcheck.wire import Address


class NaiveLock:
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        self._node = RedisNode(servers[0], timeout_ms=settings.ttl_ms)
        self._settings = settings

    def acquire(self, key: str) -> Grant:
        began = time.monotonic()
        seconds = self._settings.ttl_ms // 1000
        if self._node.call("SET", f"lock:{key}", "locked", "NX", "EX", seconds) is None:
            raise Refused("held")
        elapsed_ms = (time.monotonic() - began) * 1000
        return Grant(secret="", valid_ms=self._settings.ttl_ms - elapsed_ms)

    def release(self, key: str, grant: Grant) -> object:  # noqa: ARG002 - blind is the point
        return {"removed": self._node.call("DEL", f"lock:{key}"), "blind": True}

    def close(self) -> None:
        self._node.close()


BACKEND = Backend(
    name="redis-naive",
    summary="one Redis, SET NX EX, blind DEL",
    promises=Promises(lease=True, fencing=False, ttl_step_ms=1000),
    servers=(redis_server("r1"),),
    connect=NaiveLock,
    errors=REDIS_ERRORS,
    retry_ms=(5, 25),
)
