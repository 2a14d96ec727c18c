"""redis-semaphore's Semaphore, with one permit."""

import redis
from redis_semaphore import NotAvailable, Semaphore


class OfOne:
    refusals = NotAvailable

    def __init__(self, key, host, port, ttl):
        client = redis.StrictRedis(host, port, socket_timeout=1)
        self.inner = Semaphore(
            client, count=1, namespace=key, stale_client_timeout=ttl, blocking=False
        )

    def acquire(self):
        self.inner.acquire()

    def release(self):
        return bool(self.inner.release())


class ByItsOwnClock(OfOne):
    def __init__(self, key, host, port, ttl):
        super().__init__(key, host, port, ttl)
        self.inner.is_use_local_time = True
