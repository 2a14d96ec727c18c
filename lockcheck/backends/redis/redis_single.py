"""`SET NX PX` with a random value, compare-and-delete by script; with a fencing token if asked."""

from __future__ import annotations

from dataclasses import replace

from lockcheck.backends.base import Claim, Promises
from lockcheck.backends.expected import SHORT, Expected, forgotten
from lockcheck.backends.expected_usual import DISK_FAILS, RESTARTS
from lockcheck.backends.redis.redis_expected import (
    CUT_OFF,
    FENCED,
    JUMPS_MEET_HOLDERS,
    LOOKS_WHEN_CUT_OFF,
    WITH_TOKEN,
    WITHOUT_TOKEN,
    in_turn,
)
from lockcheck.backends.redis.redis_lock import ACQUIRE_WITH_TOKEN, RedisLock, on_one_redis
from lockcheck.history import Refusal
from lockcheck.servers.wire import Refused


class SingleLock(RedisLock):
    def _take(self, claim: Claim, secret: str) -> int | None:
        ttl_ms = self._settings.ttl_ms
        if self._node.call("SET", f"lock:{claim.key}", secret, "NX", "PX", ttl_ms) is None:
            raise Refused(Refusal.HELD)
        return None


class FencedLock(RedisLock):
    def _take(self, claim: Claim, secret: str) -> int | None:
        return self._run(ACQUIRE_WITH_TOKEN, [f"lock:{claim.key}", f"fence:{claim.key}"], secret)


REDIS = on_one_redis(
    name="redis",
    summary="one Redis, SET NX PX with a random value, compare-and-delete",
    promises=Promises(session=False, fencing=False),
    connect=SingleLock,
    expected=(
        *WITHOUT_TOKEN,
        # A client that checks its lease can still be paused between the check and the write.
        Expected(
            "pause", "violation", ("--check-validity",), findings=("stale-write",), blame="holder"
        ),
        # A client that is paused before the check sees that its lease has run out.
        Expected("pause:holder,when=acquire", "ok", ("--check-validity", *SHORT)),
        CUT_OFF,
        LOOKS_WHEN_CUT_OFF,
        # What it sent in time arrives when the cut is over, and its lease as well.
        replace(CUT_OFF, nemesis="partition:holder,from=storage"),
        *RESTARTS,
        *in_turn("all"),
        *DISK_FAILS,
        # Keys expire by the server's wall clock, so a jump ends every lease.
        forgotten("clock:jump=+30s", JUMPS_MEET_HOLDERS),
    ),
)

REDIS_FENCED = on_one_redis(
    name="redis-fenced",
    summary="as redis, with a fencing token from INCR in the same step",
    promises=Promises(session=False, fencing=True),
    connect=FencedLock,
    expected=(*WITH_TOKEN, CUT_OFF, replace(FENCED, nemesis="partition:holder")),
)
