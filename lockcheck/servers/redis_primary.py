"""A connection to the primary that the Sentinels name; after a failure they are asked again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lockcheck.servers.redis import RedisNode, Script
from lockcheck.servers.redis_sentinel import WATCHED
from lockcheck.servers.wire import Address, Phase, WireFailure

if TYPE_CHECKING:
    from redis.sentinel import Sentinel

PRIMARY = "master"  # as ROLE reports it


class RedisPrimary:
    """Like a `RedisNode`, connected to whichever server is the primary."""

    def __init__(self, sentinels: tuple[Address, ...], timeout_ms: float) -> None:
        self._timeout_ms = timeout_ms
        # A Sentinel that hangs must not use up all the time.
        self._sentinels = _client(sentinels, timeout_ms / 1000 / (len(sentinels) + 1))
        self._node: RedisNode | None = None

    def call(self, *command: str | int | float) -> object:
        with self._found() as node:
            return node.call(*command)

    def call_next(self, *command: str | int | float) -> object:
        with self._found() as node:
            return node.call_next(*command)

    def run(self, script: Script, keys: list[str], arguments: list[str | int | float]) -> object:
        with self._found() as node:
            return node.run(script, keys, arguments)

    def close(self) -> None:
        self._forget()
        self._sentinels.close()

    @contextmanager
    def _found(self) -> Iterator[RedisNode]:
        if self._node is not None and self._node.went_stale():
            self._forget()  # it ended, or became a replica, which closes its connections
        if self._node is None:
            self._node = RedisNode(self._find(), self._timeout_ms, role=PRIMARY)
        try:
            yield self._node
        except WireFailure:
            self._forget()
            raise

    def _find(self) -> Address:
        from redis.exceptions import RedisError

        try:
            host, port = self._sentinels.discover_master(WATCHED)
        except (RedisError, OSError) as error:
            raise WireFailure(Phase.CONNECT, "the Sentinels", error) from error
        return host, port

    def _forget(self) -> None:
        if self._node is not None:
            self._node.close()
            self._node = None


def _client(sentinels: tuple[Address, ...], timeout_s: float) -> Sentinel:
    from redis.backoff import NoBackoff
    from redis.retry import Retry
    from redis.sentinel import Sentinel

    asking = {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
    }
    return Sentinel(list(sentinels), sentinel_kwargs=asking)
