"""redlock-py: Redlock on several Redis."""

from redlock import Redlock


class Majority:
    def __init__(self, key, servers, ttl_ms):
        masters = [{"host": host, "port": port, "socket_timeout": 1} for host, port in servers]
        self.inner = Redlock(masters, retry_count=1)
        self.key, self.ttl_ms, self.granted = key, ttl_ms, False

    def acquire(self):
        self.granted = self.inner.lock(self.key, self.ttl_ms)
        return bool(self.granted)

    def release(self):
        self.inner.unlock(self.granted)
