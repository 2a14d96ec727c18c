"""redis-rw-lock's lock for readers and writers."""

import redis
from redis_rw_lock import RWLock


class Leased:
    def __init__(self, key, host, port, ttl):
        self.client = redis.StrictRedis(host, port, socket_timeout=20)
        self.key, self.ttl, self.inner = key, round(ttl), None

    def acquire(self, mode):
        kind = RWLock.READ if mode == "shared" else RWLock.WRITE
        self.inner = RWLock(self.client, self.key, kind, expire=self.ttl)
        self.inner.acquire()

    def release(self):
        self.inner.release()
