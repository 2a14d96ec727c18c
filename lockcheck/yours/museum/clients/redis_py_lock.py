"""redis-py's lock."""

import redis


class Entered:
    """`with client.lock(...)`."""

    refusals = redis.exceptions.LockError

    def __init__(self, key, host, port, ttl):
        self.client = redis.StrictRedis(host, port, socket_timeout=2)
        self.inner = self.client.lock(key, timeout=ttl, blocking_timeout=1)

    def __enter__(self):
        return self.inner.__enter__()

    def __exit__(self, *error):
        return self.inner.__exit__(*error)
