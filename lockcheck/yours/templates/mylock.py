"""The client of a lock, for lockcheck: lockcheck validate --client mylock:MyLock

As it stands, the lock is a key in Redis with a lease, set if it is not there, and removed by its
owner alone. Put your own in the three places.
"""

import uuid

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

REMOVE = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1])"


class MyLock:
    def __init__(self, key, host, port, ttl_ms):
        # 1. Connect. Other parameters by their names: servers, url, ttl, node, lost.
        #    A request that is repeated unseen may remove a lock that was granted again: no Retry.
        once = Retry(NoBackoff(), 0)
        self.redis = redis.Redis(host, port, socket_timeout=1, socket_connect_timeout=1, retry=once)
        self.key, self.ttl_ms, self.owner = f"lock:{key}", ttl_ms, uuid.uuid4().hex

    def acquire(self):
        # 2. True, or a fencing token: it is granted. False: it is held. An exception: it may have
        #    happened.
        return bool(self.redis.set(self.key, self.owner, nx=True, px=self.ttl_ms))

    def release(self):
        # 3. False: it was not ours any more.
        return bool(self.redis.eval(REMOVE, 1, self.key, self.owner))
