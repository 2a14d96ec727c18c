"""`SET NX PX` with a random value, compare-and-delete by script; with a fencing token if asked."""

from __future__ import annotations

import time
from functools import partial

from lockcheck.backends.base import Backend, Grant, LockSettings, Promises, Refused
from lockcheck.backends.redis_server import REDIS_ERRORS, redis_server
from lockcheck.redis_node import RedisNode, Script
from lockcheck.wire import Address

RELEASE_IF_OWN = Script("""
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
""")

# The token counts up only when the lock is granted, and in the same step: no later holder can
# have a smaller one.
ACQUIRE_WITH_TOKEN = Script("""
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return 0
""")


class SingleLock:
    def __init__(
        self, servers: tuple[Address, ...], settings: LockSettings, *, with_token: bool
    ) -> None:
        self._node = RedisNode(servers[0], timeout_ms=settings.ttl_ms)
        self._settings = settings
        self._with_token = with_token

    def acquire(self, key: str) -> Grant:
        began = time.monotonic()
        secret = f"{self._settings.owner}:{self._settings.choices.getrandbits(160):040x}"
        token = self._ask(key, secret)
        elapsed_ms = (time.monotonic() - began) * 1000
        return Grant(secret, token, valid_ms=self._settings.ttl_ms - elapsed_ms)

    def _ask(self, key: str, secret: str) -> int | None:
        ttl_ms = self._settings.ttl_ms
        if not self._with_token:
            if self._node.call("SET", f"lock:{key}", secret, "NX", "PX", ttl_ms) is None:
                raise Refused("held")
            return None
        keys = [f"lock:{key}", f"fence:{key}"]
        token = self._node.run(ACQUIRE_WITH_TOKEN, keys, [secret, ttl_ms])
        if not isinstance(token, int) or token == 0:
            raise Refused("held")
        return token

    def release(self, key: str, grant: Grant) -> object:
        removed = self._node.run(RELEASE_IF_OWN, [f"lock:{key}"], [grant.secret])
        if removed == 0:
            raise Refused("not-owner")
        return {"removed": removed}

    def close(self) -> None:
        self._node.close()


REDIS = Backend(
    name="redis",
    summary="one Redis, SET NX PX with a random value, compare-and-delete",
    promises=Promises(lease=True, fencing=False),
    servers=(redis_server("r1"),),
    connect=partial(SingleLock, with_token=False),
    errors=REDIS_ERRORS,
    retry_ms=(5, 25),
)

REDIS_FENCED = Backend(
    name="redis-fenced",
    summary="as redis, with a fencing token from INCR in the same step",
    promises=Promises(lease=True, fencing=True),
    servers=(redis_server("r1"),),
    connect=partial(SingleLock, with_token=True),
    errors=REDIS_ERRORS,
    retry_ms=(5, 25),
)
