"""The lock of python-redis-lock, which renews its lease from a thread of its own, as a client of
lockcheck."""

from functools import cache

import redis
import redis_lock
from redis.backoff import NoBackoff
from redis.retry import Retry

promises = ["session"]
refusals = redis_lock.NotAcquired


@cache
def connection(host, port):
    once = Retry(NoBackoff(), 0)
    return redis.Redis(host, port, socket_timeout=2, socket_connect_timeout=2, retry=once)


class Lock(redis_lock.Lock):
    def __init__(self, key, host, port, ttl):
        super().__init__(connection(host, port), key, expire=int(ttl), auto_renewal=True)

    def acquire(self):
        return super().acquire(blocking=False)
