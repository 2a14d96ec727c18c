"""etcd3's lock: a key with a lease in etcd."""

import etcd3


class Entered:
    """`with client.lock(...)`, as its docstring has it."""

    def __init__(self, key, host, port, ttl):
        client = etcd3.client(host, port, timeout=2)
        self.inner = client.lock(key, ttl=round(ttl))

    def __enter__(self):
        return self.inner.__enter__()

    def __exit__(self, *error):
        return self.inner.__exit__(*error)


class Asked(Entered):
    """`acquire`, whose answer is looked at."""

    def acquire(self, wait):
        return self.inner.acquire(timeout=wait)

    def release(self):
        return bool(self.inner.release())
