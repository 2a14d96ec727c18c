"""The safe lock of a single Redis, on a primary that can fail over: `redis-failover`.

The steps are those of `redis`, but on the primary that Sentinel names. Replication is asynchronous,
so after a failover the new primary may lack a lock that the old one granted: this lock shows that.

With `redis-wait` a grant waits until a replica has it (`WAIT 1`), and is taken back if none has it
in time. Losses become rarer, but remain possible: Sentinel may promote another replica than the one
that answered, and a replaced primary may not know yet that it was replaced.
"""

from __future__ import annotations

from lockcheck.backends.base import Backend, Claim, Promises
from lockcheck.backends.expected import Expected, forgotten
from lockcheck.backends.redis.redis_expected import WITHOUT_TOKEN
from lockcheck.backends.redis.redis_lock import RELEASE_IF_OWN
from lockcheck.backends.redis.redis_single import SingleLock
from lockcheck.history import EventType, Refusal
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind
from lockcheck.servers.redis import REDIS_ERRORS
from lockcheck.servers.redis_primary import RedisPrimary
from lockcheck.servers.wire import Address, ErrorRow, Phase, Refused, WireFailure

MEMBERS = 3
IN_TIME = ("--ttl", "3s")  # so that a replica follows the new primary before the lease is over
AFTER_SENTINELS = ("--ttl", "5s")  # so that Sentinels agree before the lease is over
WAIT_FOR_REPLICAS = 1
WAIT_PART_OF_TTL = 4


class NotTakenBackError(Exception):
    """The key was set, too few replicas have it, and its removal was not confirmed."""


class FailoverLock(SingleLock):
    def _connected(self, servers: tuple[Address, ...]) -> RedisPrimary:
        self._primary = RedisPrimary(servers, timeout_ms=self._settings.ttl_ms)
        return self._primary


class WaitLock(FailoverLock):
    def _take(self, claim: Claim, secret: str) -> int | None:
        super()._take(claim, secret)
        try:
            self._await_replicas()
        except (Refused, WireFailure) as failure:
            self._take_back(claim.key, secret, failure)
            raise Refused(Refusal.UNAVAILABLE, f"taken back: {failure}") from failure
        return None

    def _await_replicas(self) -> None:
        """Uses the same connection: `WAIT` counts replicas that have what was sent over it."""
        limit_ms = self._settings.ttl_ms // WAIT_PART_OF_TTL
        have_it = self._primary.call_next("WAIT", WAIT_FOR_REPLICAS, limit_ms)
        if not isinstance(have_it, int) or have_it < WAIT_FOR_REPLICAS:
            too_few = f"{have_it} replicas have it, after {limit_ms} ms"
            raise Refused(Refusal.UNAVAILABLE, too_few)

    def _take_back(self, key: str, secret: str, why: Exception) -> None:
        """Removes the key from the present primary, which may never have had it."""
        try:
            self._primary.run(RELEASE_IF_OWN, [f"lock:{key}"], [secret])
        except WireFailure as failure:
            cause = NotTakenBackError(f"{why}; {failure}")
            raise WireFailure(Phase.COMMAND, key, cause) from failure


SERVERS = (
    *(NodeSpec(f"r{n}", Role.SERVER, Kind("redis-replicated")) for n in range(1, MEMBERS + 1)),
    *(NodeSpec(f"w{n}", Role.SERVER, Kind("redis-sentinel")) for n in range(1, MEMBERS + 1)),
)

REDIS_FAILOVER = Backend(
    name="redis-failover",
    summary=f"as redis, on a primary with {MEMBERS - 1} replicas and {MEMBERS} Sentinels",
    promises=Promises(session=False, fencing=False),
    servers=SERVERS,
    contact="redis-sentinel",
    connect=FailoverLock,
    errors=REDIS_ERRORS,
    expected=(
        *WITHOUT_TOKEN,
        forgotten("failover", IN_TIME),  # the new primary does not have the lock
        forgotten("failover:by=sentinel", AFTER_SENTINELS),  # the same through real Sentinels
    ),
)

REDIS_WAIT = Backend(
    name="redis-wait",
    summary="as redis-failover, and a grant waits until a replica has it (WAIT 1)",
    promises=Promises(session=False, fencing=False),
    servers=SERVERS,
    contact="redis-sentinel",
    connect=WaitLock,
    errors=(
        ErrorRow("command", "NotTakenBackError", EventType.INFO, "set, and perhaps still there"),
        *REDIS_ERRORS,
    ),
    expected=(
        *WITHOUT_TOKEN,
        Expected("failover", "ok"),  # while no replica is connected nothing is granted
        # One replica has the lock, and the other one is promoted.
        forgotten("failover:cut=one", IN_TIME),
    ),
)
