"""etcd's own lock service (v3lock): one call, and the server waits until it is the client's turn.

The server puts a key on the client's lease and answers when all keys that were created before it
are gone. The steps are those of `concurrency.Mutex`, run inside the member that was asked.

- The fencing token is the revision at which the key was created. The answer lacks it: it is looked
  up while the call waits, or right after it. The revision in the answer's header is the store's at
  that moment, which two clients can share.
- **The client trusts the server that it is its turn**, even if its lease expired in the queue: the
  server has to check that, and etcd 3.5 does. etcd 3.4 grants the lock to an expired lease. A
  client that is let in renews the lease that it believes in; if the lease is gone, the next renewal
  reveals it, as for any holder.
- A call that takes too long is ended with its connection, and the lease is revoked: the server may
  have granted it just then.
- An unlock succeeds even if there was nothing to unlock. There was if the lease is alive right
  after it; otherwise that is unknown.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from lockcheck.backends.base import Claim, Grant, LockSettings, Promises
from lockcheck.backends.etcd.etcd_leased import (
    ENDED_BY,
    ERRORS,
    MEMBERS,
    LeasedLock,
    QueueKey,
    on_etcd,
)
from lockcheck.backends.expected_usual import MEMBERS_KILLED, SESSION
from lockcheck.backends.keeper import Keeper, KeptAlive
from lockcheck.history import EventType, Refusal
from lockcheck.servers.wire import Address, ErrorRow, Phase, Refused, WireFailure
from lockcheck.servers.wire.etcd import GaveUpError, as_bytes

LOOK_AT_MOST_S = 0.5


class ReleaseUnconfirmedError(Exception):
    """Unlocked, but by then the lease was gone, and perhaps the lock with it."""


class TrustingKeeper(Keeper):
    """Keeps a place in the queue alive as most clients do: a heartbeat every third of a lease,
    whose failures are ignored."""

    def hold(self) -> None:
        """The server's grant counts more than the client's own clock."""
        if not self.left_s():
            self._until = time.monotonic() + self._ttl_s
        self.holds = True

    def _keep(self) -> None:
        while not self._stopping.wait(self._interval_s) and not self.holds:
            self.try_to_extend()
        super()._keep()


class EtcdServiceLock(LeasedLock):
    keeper = TrustingKeeper

    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        super().__init__(servers, settings)
        self._looking = self._new_members()  # while the other connection waits

    def _enter(self, claim: Claim, lease: KeptAlive) -> QueueKey:
        lease.keeper.start()
        name = f"lock/{claim.key}"
        key, revision = f"{name}/{int(lease.id):x}", 0

        def goes_on() -> bool:
            nonlocal revision
            if not revision and (revision := self._created(key)):
                claim.queued()
            return claim.left_s() > 0

        body = {"name": as_bytes(name), "lease": lease.id}
        try:
            with self._members.one() as node:
                node.call_patiently("lock/lock", body, goes_on)
        except WireFailure as failure:
            if isinstance(failure.cause, GaveUpError):
                raise Refused(Refusal.HELD, "waited too long in the queue") from failure
            raise
        lease.keeper.try_to_extend()
        if not (revision := revision or self._created(key)):
            raise Refused(Refusal.GONE, "granted, but its key was gone before it was seen")
        return QueueKey.on(lease, key, revision)

    def _created(self, key: str) -> int:
        """The revision at which the key was created; 0 if there is none or no member answers."""
        for _ in range(len(self._looking)):
            with suppress(WireFailure):
                found = self._looking.call("kv/range", {"key": as_bytes(key)}, LOOK_AT_MOST_S)
                return int(found["kvs"][0]["create_revision"]) if "kvs" in found else 0
        return 0

    def release(self, grant: Grant) -> object:
        place = self._let_go(grant)
        self._members.call("lock/unlock", {"key": as_bytes(place.key)})
        if not self._revoked(place):
            raise WireFailure(Phase.COMMAND, grant.key, ReleaseUnconfirmedError())
        return {"removed": 1}

    def close(self) -> None:
        super().close()
        self._looking.close()


BACKEND = on_etcd(
    name="etcd-lock-service",
    summary=f"{MEMBERS} members, the server's own lock service on a lease with keep-alive",
    promises=Promises(
        session=True, fencing=True, fair=True, renews=True, waits=True, ttl_step_ms=1000
    ),
    connect=EtcdServiceLock,
    errors=(
        ErrorRow(
            "command", "ReleaseUnconfirmedError", EventType.INFO, "perhaps it was gone already"
        ),
        *ERRORS,
    ),
    retry_ms=(1, 10),
    ended_by=ENDED_BY,
    # A lease that ran out while there was no leader is granted the lock before it is revoked.
    expected=(*SESSION, *(replace(row, guard="fence") for row in MEMBERS_KILLED)),
)
