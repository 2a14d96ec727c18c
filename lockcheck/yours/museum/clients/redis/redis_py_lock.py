"""redis-py's lock."""

import threading

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


class Forever:
    """`timeout=None`, which is the default."""

    refusals = getattr(redis.exceptions, "LockNotOwnedError", ())

    def __init__(self, key, host, port, ttl):
        retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        self.client = redis.Redis(host, port, socket_timeout=1, retry=retry)
        self.inner = self.client.lock(key, timeout=self.timeout(ttl), thread_local=False)

    def timeout(self, ttl):
        return None

    def acquire(self):
        return self.inner.acquire(blocking=False)

    def release(self):
        self.inner.release()


class Leased(Forever):
    def timeout(self, ttl):
        return ttl


class Renewed(Forever):
    """Its holder calls `reacquire` three times a second, which sets its time to live anew."""

    def __init__(self, key, host, port, ttl):
        super().__init__(key, host, port, ttl)
        self.released = threading.Event()

    def timeout(self, ttl):
        return 0  # "By default, it will remain locked until release() is called."

    def acquire(self):
        granted = super().acquire()
        if granted:
            threading.Thread(target=self.keep, daemon=True).start()
        return granted

    def keep(self):
        while not self.released.wait(0.3) and self.inner.reacquire():
            pass

    def release(self):
        self.released.set()
        super().release()


class LeasedAndRenewed(Renewed):
    def timeout(self, ttl):
        return ttl
