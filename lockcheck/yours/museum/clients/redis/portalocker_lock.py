"""portalocker's lock: who is subscribed to a channel, and answers there, holds it."""

import portalocker
import redis


class Unheard:
    refusals = portalocker.exceptions.AlreadyLocked

    def __init__(self, key, host, port):
        connection = redis.Redis(host, port, decode_responses=True, health_check_interval=1)
        self.inner = portalocker.RedisLock(key, connection, check_interval=0.1)

    def acquire(self):
        self.inner.acquire(timeout=1.5)

    def release(self):
        self.inner.release()
