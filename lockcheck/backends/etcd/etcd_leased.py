"""What every lock on etcd has in common: a key on a lease, and a keeper that keeps it alive.

- Each acquire begins with a lease. The history has the TTL that was asked for; etcd grants as much
  or more, so the promise is never taken for longer than it is.
- The revision at which the key was created is the fencing token.
- A client that is cut off is notified by its keeper when a TTL has passed.
- A client that is not let in revokes its lease, which removes its keys. If the revocation is
  confirmed the acquire has failed, else its outcome is unknown.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial

from lockcheck.backends.base import Backend, Claim, Grant, LockSettings
from lockcheck.backends.keeper import Keeper, KeptAlive, KeptAliveLock
from lockcheck.history import Refusal
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind
from lockcheck.servers.wire import NOT_WITHDRAWN, Address, Refused, WireFailure, not_withdrawn
from lockcheck.servers.wire.etcd import ETCD_ERRORS, Body, EtcdMembers, EtcdNotFoundError, as_bytes

MEMBERS = 3
SERVERS = tuple(
    NodeSpec(f"e{number}", Role.SERVER, Kind("etcd")) for number in range(1, MEMBERS + 1)
)
ERRORS = (NOT_WITHDRAWN, *ETCD_ERRORS)
on_etcd = partial(Backend, servers=SERVERS, errors=ERRORS)
ENDED_BY = "its lease, which is no longer kept alive"


@dataclass(frozen=True, slots=True)
class QueueKey(KeptAlive):
    """A key on a lease; of a lock with a queue, a place in it."""

    key: str
    revision: int

    @staticmethod
    def on(lease: KeptAlive, key: str, revision: int) -> QueueKey:
        return QueueKey(lease.id, lease.keeper, lease.connection, key, revision)


class LeasedLock(KeptAliveLock[QueueKey]):
    keeper = Keeper  # the kind of keeper
    queues = True  # a refused client may have left a key in a queue

    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        super().__init__()
        self._servers = servers
        self._ttl_ms = settings.ttl_ms
        self._choices = settings.choices
        self._members = self._new_members()

    def _new_members(self) -> EtcdMembers:
        first = self._choices.randrange(len(self._servers))
        return EtcdMembers(self._servers, self._ttl_ms / 1000, first)

    @abstractmethod
    def _enter(self, claim: Claim, lease: KeptAlive) -> QueueKey:
        """Waits until it is let in. Starts the keeper as soon as there is a key to keep."""

    def acquire(self, claim: Claim) -> Grant:
        lease = self._grant_lease(claim)
        try:
            place = self._enter(claim, lease)
        except (Refused, WireFailure) as failure:
            lease.stop()
            raise self._withdrawn(claim, lease, failure) from failure
        return self._granted(claim, place, place.revision)

    def _withdrawn(
        self, claim: Claim, lease: KeptAlive, failure: Refused | WireFailure
    ) -> Refused | WireFailure:
        refused = isinstance(failure, Refused)
        if self._revoked(lease) is not None:
            return failure if refused else Refused(Refusal.UNAVAILABLE, f"withdrawn: {failure}")
        if refused and self.queues:
            return not_withdrawn(claim.key, failure)
        return failure

    def _grant_lease(self, claim: Claim) -> KeptAlive:
        since, ttl_s = time.monotonic(), self._ttl_ms / 1000
        try:
            granted = self._members.call("lease/grant", {"TTL": self._ttl_ms // 1000})
        except WireFailure as failure:  # no key is on it: it holds nothing, even if it was granted
            raise Refused(Refusal.UNAVAILABLE, f"no lease: {failure}") from failure
        lease, keeping = str(granted["ID"]), self._new_members()
        keeper = self.keeper(
            claim, lambda timeout_s: _keep_alive(keeping, lease, timeout_s), ttl_s, since
        )
        return KeptAlive(lease, keeper, keeping)

    def release(self, grant: Grant) -> object:
        place = self._let_go(grant)
        if not self._members.call("kv/txn", _delete_if_own(place)).get("succeeded"):
            raise Refused(Refusal.NOT_OWNER)
        self._revoked(place)  # only to tidy up: the key is gone already
        return {"removed": 1}

    def close(self) -> None:
        super().close()
        self._members.close()

    def _revoked(self, lease: KeptAlive) -> bool | None:
        """Revokes a lease with its keys; False: it was gone already, None: not confirmed."""
        for _ in range(len(self._members)):
            try:
                self._members.call("lease/revoke", {"ID": lease.id})
            except WireFailure as failure:
                if isinstance(failure.cause, EtcdNotFoundError):
                    return False
            else:
                return True
        return None


def _keep_alive(members: EtcdMembers, lease: str, timeout_s: float) -> None:
    renewed = members.call("lease/keepalive", {"ID": lease}, timeout_s)
    if int(renewed["result"].get("TTL", 0)) <= 0:
        raise Refused(Refusal.GONE, "the lease is gone")


def put_on(lease: KeptAlive, key: str) -> Body:
    return {"request_put": {"key": as_bytes(key), "lease": lease.id}}


def created_at(key: str, revision: int) -> Body:
    """A condition of a transaction; revision 0: there is no such key."""
    return {"key": as_bytes(key), "target": "CREATE", "create_revision": revision}


def _delete_if_own(place: QueueKey) -> Body:
    delete = {"request_delete_range": {"key": as_bytes(place.key)}}
    return {"compare": [created_at(place.key, place.revision)], "success": [delete]}
