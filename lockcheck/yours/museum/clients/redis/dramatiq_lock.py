"""dramatiq's rate limiter of one: "to get a distributed mutex", as its docstring has it."""

from dramatiq import RateLimitExceeded
from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import RedisBackend


class OfOne:
    refusals = RateLimitExceeded

    def __init__(self, key, host, port, ttl_ms):
        backend = RedisBackend(host=host, port=port, socket_timeout=1)
        self.inner = ConcurrentRateLimiter(backend, key, limit=1, ttl=ttl_ms).acquire()

    def __enter__(self):
        return self.inner.__enter__()

    def __exit__(self, *error):
        return self.inner.__exit__(*error)
