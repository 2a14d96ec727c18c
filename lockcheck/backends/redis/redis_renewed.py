"""A short lease and a watchdog that renews it, by compare-and-expire, for as long as it is held.

What Redisson and others call a watchdog. When a renewal is refused, or none was granted for a whole
lease, it ends, and the client is notified and stops. A late release is refused.
"""

from __future__ import annotations

import time

from lockcheck.backends.base import Claim, Grant, LockSettings, Promises
from lockcheck.backends.expected import unharmed
from lockcheck.backends.keeper import RENEWALS_IN_A_LEASE, Keeper, KeptAlive, KeptAliveLock
from lockcheck.backends.redis.redis_expected import WITH_TOKEN
from lockcheck.backends.redis.redis_lock import (
    ACQUIRE_WITH_TOKEN,
    RELEASE_IF_OWN,
    new_secret,
    on_one_redis,
    one_server,
)
from lockcheck.history import Refusal
from lockcheck.servers.redis import RedisNode, Script
from lockcheck.servers.wire import Address, Refused

RENEW_IF_OWN = Script("""
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
""")


class RenewedLock(KeptAliveLock[KeptAlive]):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        super().__init__()
        self._servers = servers
        self._settings = settings
        self._node = one_server(servers, settings)

    def acquire(self, claim: Claim) -> Grant:
        since, secret, ttl_ms = time.monotonic(), new_secret(self._settings), self._settings.ttl_ms
        keys = [f"lock:{claim.key}", f"fence:{claim.key}"]
        token = self._node.run(ACQUIRE_WITH_TOKEN, keys, [secret, ttl_ms])
        if not isinstance(token, int) or token == 0:
            raise Refused(Refusal.HELD)
        kept = self._keep(claim, secret, since)
        grant = self._granted(claim, kept, token)
        kept.keeper.start()
        return grant

    def _keep(self, claim: Claim, secret: str, since: float) -> KeptAlive:
        ttl_ms = self._settings.ttl_ms
        node = RedisNode(self._servers[0], ttl_ms / RENEWALS_IN_A_LEASE)

        def extend(timeout_s: float) -> None:
            asked = node.run(RENEW_IF_OWN, [f"lock:{claim.key}"], [secret, ttl_ms], timeout_s)
            if asked != 1:
                raise Refused(Refusal.GONE, "it is not its own any more")

        return KeptAlive(secret, Keeper(claim, extend, ttl_ms / 1000, since), node)

    def release(self, grant: Grant) -> object:
        kept = self._let_go(grant)
        removed = self._node.run(RELEASE_IF_OWN, [f"lock:{grant.key}"], [kept.id])
        if removed == 0:
            raise Refused(Refusal.NOT_OWNER)
        return {"removed": removed}

    def close(self) -> None:
        super().close()
        self._node.close()


BACKEND = on_one_redis(
    name="redis-renewed",
    summary="as redis-fenced, and a watchdog renews the lease for as long as it is held",
    promises=Promises(session=False, fencing=True, renews=True),
    connect=RenewedLock,
    # A client whose renewals are not answered is notified before its lease is over.
    expected=(*WITH_TOKEN, *unharmed("partition:holder")),
)
