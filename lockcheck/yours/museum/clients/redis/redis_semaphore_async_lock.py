"""redis-semaphore-async's Semaphore, with one permit."""

from redis.asyncio import Redis
from redis_semaphore_async import Semaphore


class OfOne:
    def __init__(self, key, host, port):
        self.client = Redis(host=host, port=port, decode_responses=True)
        self.inner = Semaphore(redis=self.client, task_name=key, value=1)

    async def acquire(self):
        await self.inner.acquire()

    async def release(self):
        await self.inner.release()
        await self.client.aclose()
