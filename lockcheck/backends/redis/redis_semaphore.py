"""A semaphore: a set of holders, each with the end of its lease by the server's own clock.

Other recipes use the clients' clocks, and lose permits to clients whose clocks are fast. Here one
script removes expired holders, counts the rest and lets one more in, so there are never too many in
the set. A client that is paused for longer than its lease is removed from the set without its
knowledge: then one too many may be at work.
"""

from __future__ import annotations

from lockcheck.backends.base import Claim, Grant, Promises
from lockcheck.backends.expected_usual import QUICK_RESTART
from lockcheck.backends.redis.redis_expected import WITHOUT_STORAGE
from lockcheck.backends.redis.redis_lock import NOW_MS, RedisLock, on_one_redis
from lockcheck.servers.redis import Script

PERMITS = 3

ENTER = Script(f"""
{NOW_MS}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
return redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
""")

LEAVE = Script(f"""
{NOW_MS}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZREM', KEYS[1], ARGV[1])
""")


class Semaphore(RedisLock):
    def _take(self, claim: Claim, secret: str) -> int | None:
        self._run(ENTER, [f"permits:{claim.key}"], secret, PERMITS)
        return None

    def _give_back(self, grant: Grant, secret: str) -> object:
        return self._node.run(LEAVE, [f"permits:{grant.key}"], [secret])


BACKEND = on_one_redis(
    name="redis-semaphore",
    summary=f"one Redis, {PERMITS} permits: a set of holders with leases by the server's clock",
    promises=Promises(session=False, fencing=False, permits=PERMITS),
    connect=Semaphore,
    workload="permits",
    expected=(*WITHOUT_STORAGE, QUICK_RESTART),
)
