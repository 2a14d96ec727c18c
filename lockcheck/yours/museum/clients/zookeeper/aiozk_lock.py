"""aiozk's recipes on ZooKeeper."""

from datetime import timedelta

import aiozk


class Leased:
    """Its Lease, with the limit of one that is the default."""

    def __init__(self, servers, ttl, node):
        self.hosts = ",".join(f"{host}:{port}" for host, port in servers)
        self.ttl, self.client, self.held = ttl, None, {}

    async def connected(self):
        if self.client is None:
            self.client = aiozk.ZKClient(self.hosts, session_timeout=self.ttl)
            await self.client.start()
        return self.client

    async def acquire(self, key):
        client = await self.connected()
        await client.ensure_path("/" + key)
        self.held[key] = client.recipes.Lease("/" + key)
        return await self.held[key].obtain(timedelta(seconds=self.ttl))

    async def release(self, key):
        await self.held.pop(key).release()


class Waiting(Leased):
    """Its Lock."""

    async def acquire(self, key, wait):
        client = await self.connected()
        held = client.recipes.Lock("/" + key)
        await held.acquire(timeout=wait)
        self.held[key] = held
