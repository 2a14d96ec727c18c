"""sherlock's lock on Redis."""

import threading

import redis
from sherlock import LockException, RedisLock


class Expiring:
    refusals = LockException

    def __init__(self, key, host, port, ttl):
        client = redis.Redis(host, port, socket_timeout=1)
        self.inner = RedisLock(key, client=client, expire=self.expire(ttl))

    def expire(self, ttl):
        return round(ttl)

    def acquire(self):
        return self.inner.acquire(blocking=False)

    def release(self):
        self.inner.release()


class Forever(Expiring):
    """Without a lease, as documented: "If explicitly set to `None`, lock will not expire"."""

    def expire(self, ttl):
        return None


class Renewed(Expiring):
    """Its holder renews it three times in a lease."""

    def __init__(self, key, host, port, ttl):
        super().__init__(key, host, port, ttl)
        self.rest, self.released = ttl / 3, threading.Event()

    def acquire(self):
        granted = super().acquire()
        if granted:
            threading.Thread(target=self.keep, daemon=True).start()
        return granted

    def keep(self):
        while not self.released.wait(self.rest) and self.inner.renew():
            pass

    def release(self):
        self.released.set()
        super().release()
