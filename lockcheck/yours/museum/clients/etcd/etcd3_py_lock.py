"""etcd3-py's lock: a key with a lease in etcd, which it keeps alive."""

import etcd3
from etcd3.stateful.lock import EtcdLockAcquireTimeout


class Waiting:
    """It waits for its turn, as `with client.Lock(...)` does."""

    refusals = EtcdLockAcquireTimeout

    def __init__(self, key, host, port, ttl):
        self.client = etcd3.Client(host, port, timeout=2)
        self.inner = self.client.Lock(key, lock_ttl=round(ttl))

    def acquire(self, wait):
        self.inner.acquire(timeout=wait)

    def release(self):
        self.inner.release()
