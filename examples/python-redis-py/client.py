"""The lock of redis-py, as a client of lockcheck."""

from functools import cache

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

promises = ["waits"]
refusals = redis.exceptions.LockNotOwnedError


@cache
def connection(host, port):
    once = Retry(NoBackoff(), 0)
    return redis.Redis(host, port, socket_timeout=2, socket_connect_timeout=2, retry=once)


def lock(key, host, port, ttl):
    return connection(host, port).lock(key, timeout=ttl, sleep=0.01, thread_local=False)
