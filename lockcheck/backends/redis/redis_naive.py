"""`SET NX EX` and a blind `DEL`: the lock that many write first, and many still run."""

from __future__ import annotations

from lockcheck.backends.base import Claim, Grant, Promises
from lockcheck.backends.expected import SHORT, Expected
from lockcheck.backends.expected_usual import RESTARTS
from lockcheck.backends.redis.redis_expected import FREED, QUIET
from lockcheck.backends.redis.redis_lock import RedisLock, on_one_redis
from lockcheck.history import Refusal
from lockcheck.servers.wire import Refused


class NaiveLock(RedisLock):
    def _secret(self) -> str:
        return "locked"  # the same for all clients

    def _take(self, claim: Claim, secret: str) -> int | None:
        seconds = self._settings.ttl_ms // 1000
        if self._node.call("SET", f"lock:{claim.key}", secret, "NX", "EX", seconds) is None:
            raise Refused(Refusal.HELD)
        return None

    def release(self, grant: Grant) -> object:
        """Removes the lock, whichever client holds it now."""
        return {"removed": self._node.call("DEL", f"lock:{grant.key}")}


BACKEND = on_one_redis(
    name="redis-naive",
    summary="one Redis, SET NX EX, blind DEL",
    promises=Promises(session=False, fencing=False, checks_owner=False, ttl_step_ms=1000),
    connect=NaiveLock,
    expected=(
        QUIET,
        # A paused client outlives its lease, writes, and deletes the next holder's lock.
        Expected("pause", "violation", findings=("overlap", "stale-write")),
        FREED,
        *RESTARTS,
        # A client that works for longer than the lease deletes the lock of the next holder.
        Expected(
            "none",
            "violation",
            ("--think", "1500ms", "--no-stop-on-violation", *SHORT),
            findings=("overlap", "foreign-release"),
        ),
    ),
)
