"""etcd's lock, as its own `concurrency.Mutex` does it: a queue of keys, each on a lease.

A client puts a key below the lock's prefix, bound to a lease. The key that was created first holds
the lock; all others wait until the one right before theirs is deleted.

After the wait the lease is renewed and the key checked once more: the lease may have expired in the
queue (etcd 3.4 granted locks to such clients).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lockcheck.backends.base import Claim, Promises
from lockcheck.backends.etcd.etcd_leased import MEMBERS, LeasedLock, QueueKey, on_etcd, put_on
from lockcheck.backends.expected import SHORT, Expected, forgotten
from lockcheck.backends.expected_usual import DISK_FAILS, FOLLOWER_JUMPS, KEPT_ALIVE, MEMBERS_CUT
from lockcheck.backends.keeper import KeptAlive
from lockcheck.history import Refusal
from lockcheck.servers.wire import Refused, WireFailure
from lockcheck.servers.wire.etcd import Body, as_bytes, end_of_prefix, from_bytes

AFTER_A_FAILURE_S = 0.02  # until the next member is asked for the same


class EtcdLock(LeasedLock):
    def _enter(self, claim: Claim, lease: KeptAlive) -> QueueKey:
        place, is_first = self._stand(claim.key, lease)
        lease.keeper.start()
        if not is_first:
            claim.queued()
            self._await_turn(claim, place)
        return place

    def _stand(self, key: str, lease: KeptAlive) -> tuple[QueueKey, bool]:
        """Puts the key, and returns whether it is the first, read in the same transaction."""
        prefix = _prefix(key)
        own = f"{prefix}{int(lease.id):x}"
        first = {"request_range": {**_range(prefix), **_by_age("ASCEND")}}
        done = self._members.call("kv/txn", {"success": [put_on(lease, own), first]})
        revision = int(done["header"]["revision"])
        [owner] = done["responses"][1]["response_range"]["kvs"]
        return QueueKey.on(lease, own, revision), int(owner["create_revision"]) == revision

    def _await_turn(self, claim: Claim, place: QueueKey) -> None:
        def left_s() -> float:
            return 0.0 if place.keeper.why_lost else claim.left_s()

        while left_s() > 0:
            try:
                if self._is_its_turn(claim, place, left_s):
                    return
            except WireFailure:  # a read: another member can answer as well
                time.sleep(AFTER_A_FAILURE_S)
        if place.keeper.why_lost:
            raise Refused(Refusal.GONE, place.keeper.why_lost)
        raise Refused(Refusal.HELD, "waited too long in the queue")

    def _is_its_turn(self, claim: Claim, place: QueueKey, left_s: Callable[[], float]) -> bool:
        before = {**_range(_prefix(claim.key)), "max_create_revision": place.revision - 1}
        found = self._members.call("kv/range", {**before, **_by_age("DESCEND")})
        if predecessors := found.get("kvs"):
            predecessor = from_bytes(predecessors[0]["key"])
            with self._members.one() as node:
                node.await_deletion(predecessor, int(found["header"]["revision"]) + 1, left_s)
            return False  # there may be another one, further ahead
        place.keeper.extend()
        if not self._has_key(place):
            raise Refused(Refusal.GONE, "its session expired while it waited")
        return True

    def _has_key(self, place: QueueKey) -> bool:
        found = self._members.call("kv/range", {"key": as_bytes(place.key)}).get("kvs", [])
        return [int(kv["create_revision"]) for kv in found] == [place.revision]


def _prefix(key: str) -> str:
    return f"lock/{key}/"


def _range(prefix: str) -> Body:
    return {"key": as_bytes(prefix), "range_end": as_bytes(end_of_prefix(prefix))}


def _by_age(order: str) -> Body:
    return {"sort_target": "CREATE", "sort_order": order, "limit": 1}


BACKEND = on_etcd(
    name="etcd",
    summary=f"{MEMBERS} members, a queue of keys on leases with keep-alive, as its own Mutex",
    promises=Promises(
        session=True, fencing=True, fair=True, renews=True, waits=True, ttl_step_ms=1000
    ),
    connect=EtcdLock,
    retry_ms=(1, 10),
    expected=(
        *KEPT_ALIVE,
        *MEMBERS_CUT,
        *DISK_FAILS,
        # Only the leader times leases, by its monotonic clock. A jump ends all of them at once, in
        # the queue, too, and clients need time to come back.
        forgotten("clock:leader,jump=+30s,for=1s,gap=1s", ("--think", "800ms", "--ttl", "2s")),
        FOLLOWER_JUMPS,
        Expected("clock:leader,jump=+30s,wall", "ok", SHORT),
    ),
)
