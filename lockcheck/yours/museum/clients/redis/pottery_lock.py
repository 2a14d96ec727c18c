"""pottery's Redlock."""

import redis
from pottery import Redlock
from pottery.exceptions import ReleaseUnlockedLock


class Majority:
    refusals = ReleaseUnlockedLock

    def __init__(self, key, servers, ttl):
        masters = {redis.Redis(host, port, socket_timeout=1) for host, port in servers}
        self.inner = Redlock(key=key, masters=masters, auto_release_time=ttl)

    def acquire(self):
        return self.inner.acquire(blocking=False)

    def release(self):
        self.inner.release()
