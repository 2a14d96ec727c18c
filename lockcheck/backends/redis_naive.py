"""`SET NX EX` and a blind `DEL`: the lock that many first write, and that many still run."""

from __future__ import annotations

from lockcheck.backends.base import Backend, Claim, Grant, Lock, LockSettings, Promises
from lockcheck.backends.expected import SHORT, Expected
from lockcheck.backends.redis_expected import FREED, QUIET
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.redis import REDIS_ERRORS, RedisNode
from lockcheck.servers.wire import Address, Refused


class NaiveLock(Lock):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        self._node = RedisNode(servers[0], timeout_ms=settings.ttl_ms)
        self._settings = settings

    def acquire(self, claim: Claim) -> Grant:
        began = self._settings.now_s()
        seconds = self._settings.ttl_ms // 1000
        if self._node.call("SET", f"lock:{claim.key}", "locked", "NX", "EX", seconds) is None:
            raise Refused("held")
        elapsed_ms = (self._settings.now_s() - began) * 1000
        return Grant(claim.key, None, valid_ms=self._settings.ttl_ms - elapsed_ms)

    def release(self, grant: Grant) -> object:  # whoever holds it now: blind is the point
        return {"removed": self._node.call("DEL", f"lock:{grant.key}"), "blind": True}

    def close(self) -> None:
        self._node.close()


BACKEND = Backend(
    name="redis-naive",
    summary="one Redis, SET NX EX, blind DEL",
    promises=Promises(session=False, fencing=False, ttl_step_ms=1000),
    servers=(NodeSpec("r1", Role.SERVER, "redis"),),
    connect=NaiveLock,
    errors=REDIS_ERRORS,
    expected=(
        QUIET,
        # Who is paused outlives its lease, writes on, and deletes the next holder's lock.
        Expected("pause", "violation", findings=("overlap", "stale-write")),
        FREED,
        # Who works for longer than the lease deletes the lock of the next holder.
        Expected(
            "none",
            "violation",
            ("--think", "1500ms", "--no-stop-on-violation", *SHORT),
            findings=("overlap", "foreign-release"),
        ),
    ),
)
