"""A lock on etcd without a queue: a key that is created if it is absent, bound to a lease.

One transaction decides: it creates the key, or another client holds the lock. There is no queue; a
refused client tries again, and the next holder is a matter of luck.
"""

from __future__ import annotations

from lockcheck.backends.base import Claim, Promises
from lockcheck.backends.etcd.etcd_leased import (
    ENDED_BY,
    MEMBERS,
    LeasedLock,
    QueueKey,
    created_at,
    on_etcd,
    put_on,
)
from lockcheck.backends.expected_usual import KEPT_ALIVE
from lockcheck.backends.keeper import KeptAlive
from lockcheck.history import Refusal
from lockcheck.servers.wire import Refused


class EtcdTxnLock(LeasedLock):
    queues = False

    def _enter(self, claim: Claim, lease: KeptAlive) -> QueueKey:
        key = f"lock/{claim.key}"
        create = {"compare": [created_at(key, 0)], "success": [put_on(lease, key)]}
        done = self._members.call("kv/txn", create)
        if not done.get("succeeded"):
            raise Refused(Refusal.HELD)
        lease.keeper.start()
        return QueueKey.on(lease, key, int(done["header"]["revision"]))


BACKEND = on_etcd(
    name="etcd-txn",
    summary=f"{MEMBERS} members, a key created if absent, on a lease with keep-alive",
    promises=Promises(session=True, fencing=True, renews=True, ttl_step_ms=1000),
    connect=EtcdTxnLock,
    ended_by=ENDED_BY,
    expected=KEPT_ALIVE,
)
