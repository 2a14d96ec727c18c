"""redis-py's lock as it was until 2.9: a key with the time until which it is locked."""

import redis


class ByTheClock:
    def __init__(self, key, host, port, ttl):
        client = redis.StrictRedis(host, port, socket_timeout=2)
        self.inner = client.lock(key, timeout=ttl)

    def acquire(self):
        return self.inner.acquire(blocking=False)

    def release(self):
        self.inner.release()
