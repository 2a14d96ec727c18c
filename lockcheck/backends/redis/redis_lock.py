"""What locks on one Redis have in common: a random value for each hold, and a lease."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial

from lockcheck.backends.base import Backend, Claim, Grant, Lock, LockSettings
from lockcheck.history import Refusal
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind
from lockcheck.servers.redis import REDIS_ERRORS, RedisNode, Script
from lockcheck.servers.redis_primary import RedisPrimary
from lockcheck.servers.wire import Address, Refused

ONE_SERVER = (NodeSpec("r1", Role.SERVER, Kind("redis")),)
on_one_redis = partial(Backend, servers=ONE_SERVER, errors=REDIS_ERRORS)

RELEASE_IF_OWN = Script("""
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
""")

# The token is incremented in the same step as the grant, so no later holder has a smaller one.
ACQUIRE_WITH_TOKEN = Script("""
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return 0
""")

# Milliseconds of the clock by which the server expires keys.
NOW_MS = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""


def new_secret(settings: LockSettings) -> str:
    """A unique value; people can see whose it is."""
    return f"{settings.owner}:{settings.choices.getrandbits(160):040x}"


def one_server(servers: tuple[Address, ...], settings: LockSettings) -> RedisNode:
    return RedisNode(servers[0], timeout_ms=settings.ttl_ms)


class RedisLock(Lock):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        self._settings = settings
        self._node = self._connected(servers)

    def _connected(self, servers: tuple[Address, ...]) -> RedisNode | RedisPrimary:
        return one_server(servers, self._settings)

    def acquire(self, claim: Claim) -> Grant:
        began = self._settings.now_s()
        secret = self._secret()
        token = self._take(claim, secret)
        elapsed_ms = (self._settings.now_s() - began) * 1000
        valid_ms = self._settings.ttl_ms - elapsed_ms
        return Grant(claim.key, secret, token, valid_ms, claim.mode)

    def release(self, grant: Grant) -> object:
        removed = self._give_back(grant, str(grant.handle))
        if removed == 0:
            raise Refused(Refusal.NOT_OWNER)
        return {"removed": removed}

    def close(self) -> None:
        self._node.close()

    def _secret(self) -> str:
        return new_secret(self._settings)

    @abstractmethod
    def _take(self, claim: Claim, secret: str) -> int | None:
        """Takes the lock, and returns its token if there is one. Raises Refused."""

    def _give_back(self, grant: Grant, secret: str) -> object:
        """Releases the lock; 0 if the client did not hold it any more."""
        return self._node.run(RELEASE_IF_OWN, [f"lock:{grant.key}"], [secret])

    def _run(self, script: Script, keys: list[str], secret: str, *more: str | int) -> int:
        """Runs a script that grants, and returns its answer: above 0. Raises Refused."""
        answer = self._node.run(script, keys, [secret, self._settings.ttl_ms, *more])
        if not isinstance(answer, int) or answer <= 0:
            raise Refused(Refusal.HELD)
        return answer
