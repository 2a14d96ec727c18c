"""etcd3gw's lock: a key with a lease in etcd, over its JSON gateway."""

import etcd3gw


class Entered:
    """`with client.lock(...)`, as its docstring has it: "Use the lock as a contextmanager"."""

    def __init__(self, key, host, port, ttl):
        client = etcd3gw.client(host, port, timeout=2)
        self.inner = client.lock(key, ttl=round(ttl))

    def __enter__(self):
        return self.inner.__enter__()

    def __exit__(self, *error):
        return self.inner.__exit__(*error)


class Asked(Entered):
    """`acquire`, whose answer is looked at."""

    def acquire(self):
        return self.inner.acquire()

    def release(self):
        return self.inner.release()
