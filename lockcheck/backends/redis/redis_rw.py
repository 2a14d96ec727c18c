"""Shared and exclusive: a writer holds it alone, readers hold it together, each on its own lease.

The writer is a key that expires. Members of a set do not expire in Redis, so each reader's entry
has the end of its lease, by the server's own clock, and every request removes expired ones. There
is no queue, so readers that never leave a gap keep writers out for ever.
"""

from __future__ import annotations

from lockcheck.backends.base import Claim, Grant, Mode, Promises
from lockcheck.backends.expected_usual import QUICK_RESTART
from lockcheck.backends.redis.redis_expected import WITHOUT_STORAGE
from lockcheck.backends.redis.redis_lock import NOW_MS, RELEASE_IF_OWN, RedisLock, on_one_redis
from lockcheck.servers.redis import Script

WITHOUT_THE_LATE = f"""
{NOW_MS}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
"""

WRITE = Script(f"""
{WITHOUT_THE_LATE}
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return 0
""")

READ = Script(f"""
{WITHOUT_THE_LATE}
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
return redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
""")

LEAVE_READERS = Script(f"""
{WITHOUT_THE_LATE}
return redis.call('ZREM', KEYS[2], ARGV[1])
""")


class RedisSharedLock(RedisLock):
    def _take(self, claim: Claim, secret: str) -> int | None:
        script = READ if claim.mode is Mode.SHARED else WRITE
        self._run(script, _keys(claim.key), secret)
        return None

    def _give_back(self, grant: Grant, secret: str) -> object:
        script = LEAVE_READERS if grant.mode is Mode.SHARED else RELEASE_IF_OWN
        return self._node.run(script, _keys(grant.key), [secret])


def _keys(key: str) -> list[str]:
    return [f"lock:{key}", f"readers:{key}"]


BACKEND = on_one_redis(
    name="redis-rw",
    summary="one Redis, shared and exclusive: a key for the writer, a set of readers with leases",
    promises=Promises(session=False, fencing=False, shared=True),
    connect=RedisSharedLock,
    workload="readers",
    expected=(*WITHOUT_STORAGE, QUICK_RESTART),
)
