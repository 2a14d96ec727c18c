"""aetcd's lock: a key with a lease in etcd."""

import aetcd


class Entered:
    """`async with client.lock(...)`."""

    def __init__(self, key, host, port, ttl):
        self.client = aetcd.Client(host, port, timeout=2)
        self.key, self.ttl, self.inner = key.encode(), round(ttl), None

    async def __aenter__(self):
        self.inner = self.client.lock(self.key, self.ttl)
        return await self.inner.__aenter__()

    async def __aexit__(self, *error):
        await self.inner.__aexit__(*error)
        await self.client.close()


class Asked(Entered):
    """`acquire`, whose answer is looked at."""

    async def acquire(self, wait):
        self.inner = self.client.lock(self.key, self.ttl)
        return await self.inner.acquire(timeout=wait)

    async def release(self):
        released = await self.inner.release()
        await self.client.close()
        return released
