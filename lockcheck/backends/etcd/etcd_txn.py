"""A lock on etcd without a queue: a key that is created if it is absent, bound to a lease.

One transaction decides: it creates the key, or another client holds the lock. There is no queue; a
refused client tries again, and the next holder is a matter of luck.
"""

from __future__ import annotations

from lockcheck.backends.base import Backend, Claim, Promises
from lockcheck.backends.etcd.etcd_leased import (
    ENDED_BY,
    ERRORS,
    MEMBERS,
    SERVERS,
    LeasedLock,
    QueueKey,
    created_at,
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


BACKEND = Backend(
    name="etcd-txn",
    summary=f"{MEMBERS} members, a key created if absent, on a lease with keep-alive",
    promises=Promises(session=True, fencing=True, renews=True, ttl_step_ms=1000),
    servers=SERVERS,
    connect=EtcdTxnLock,
    errors=ERRORS,
    ended_by=ENDED_BY,
    expected=KEPT_ALIVE,
)
