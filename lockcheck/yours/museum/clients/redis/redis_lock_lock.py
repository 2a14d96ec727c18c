"""python-redis-lock's lock, whose thread renews it."""

import redis
import redis_lock


class Renewed:
    refusals = redis_lock.NotAcquired

    def __init__(self, key, host, port, ttl):
        client = redis.StrictRedis(host, port, socket_timeout=1)
        self.inner = redis_lock.Lock(client, key, expire=round(ttl), auto_renewal=True)

    def acquire(self):
        return self.inner.acquire(blocking=False)

    def release(self):
        self.inner.release()
