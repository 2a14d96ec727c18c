"""Reentrant: a hash with its owner and how often it entered, as Redisson's.

A client that enters again gets a new lease. A release counts down, and the last one frees the lock.
The owner is the client. If one of its requests is not answered, its count is unknown, so it goes on
under another name and lets that hold expire.
"""

from __future__ import annotations

from dataclasses import replace

from lockcheck.backends.base import Claim, Grant, LockSettings, Promises
from lockcheck.backends.expected import LIMIT
from lockcheck.backends.expected_usual import QUICK_RESTART
from lockcheck.backends.redis.redis_expected import WITHOUT_STORAGE
from lockcheck.backends.redis.redis_lock import RedisLock, new_secret, on_one_redis
from lockcheck.servers.redis import Script
from lockcheck.servers.wire import Address, WireFailure

ENTER = Script("""
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local entered = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return entered
""")

# The rest of the lease stays as it was: a release promises nothing.
LEAVE = Script("""
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) <= 0 then redis.call('DEL', KEYS[1]) end
return 1
""")


class ReentrantLock(RedisLock):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        super().__init__(servers, settings)
        self._owner = new_secret(settings)

    def _secret(self) -> str:
        return self._owner

    def _take(self, claim: Claim, secret: str) -> int | None:
        try:
            self._run(ENTER, [f"lock:{claim.key}"], secret)
        except WireFailure:
            self._go_on_as_another()
            raise
        return None

    def _give_back(self, grant: Grant, secret: str) -> object:
        try:
            return self._node.run(LEAVE, [f"lock:{grant.key}"], [secret])
        except WireFailure:
            self._go_on_as_another()
            raise

    def leave(self, grant: Grant) -> None:
        if grant.handle == self._owner:
            self._go_on_as_another()

    def _go_on_as_another(self) -> None:
        self._owner = new_secret(self._settings)


BACKEND = on_one_redis(
    name="redis-reentrant",
    summary="one Redis, a hash with the owner's count, as Redisson's",
    promises=Promises(session=False, fencing=False, reentrant=True),
    connect=ReentrantLock,
    workload="nested",
    expected=(
        *WITHOUT_STORAGE,
        # Several updates under one lock take no longer than its lease.
        replace(QUICK_RESTART, options=("--ttl", "2s", "--think", "200ms", LIMIT, "15s")),
    ),
)
