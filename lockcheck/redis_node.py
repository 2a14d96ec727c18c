"""One connection to one Redis (or Valkey), with every step in the open.

No pool and no hidden retry: a lock's client must know whether a command was never sent (it
certainly did not happen) or was sent and not answered (nobody knows).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockcheck.wire import Address, Phase, WireFailure

if TYPE_CHECKING:
    from redis.connection import Connection

# Starts fast, keeps nothing on disk, and looks often for keys that have expired.
REDIS_ARGUMENTS = (
    *("--save", "", "--appendonly", "no", "--protected-mode", "no"),
    # All addresses of a namespace that is the node's own: nothing of it is the host's.
    *("--bind", "0.0.0.0", "--port", "6379"),  # noqa: S104
    *("--hz", "100", "--daemonize", "no"),
)
REDIS_PORT = 6379


@dataclass(frozen=True, slots=True)
class Script:
    text: str

    @property
    def sha(self) -> str:
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


class RedisNode:
    def __init__(self, address: Address, timeout_ms: float) -> None:
        from redis.backoff import NoBackoff
        from redis.connection import Connection
        from redis.retry import Retry

        self.address = address
        self._open = False
        self._connection: Connection = Connection(
            host=address[0],
            port=address[1],
            socket_timeout=timeout_ms / 1000,
            socket_connect_timeout=timeout_ms / 1000,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
            protocol=2,
        )

    def call(self, *command: str | int | float) -> object:
        self._connect()
        from redis.exceptions import RedisError

        try:
            self._connection.send_command(*command)
            return self._connection.read_response()
        except (RedisError, OSError) as error:
            self._forget_unless_answered(error)
            raise WireFailure(Phase.COMMAND, self.address[0], error) from error

    def run(self, script: Script, keys: list[str], arguments: list[str | int | float]) -> object:
        """By its hash; the text goes over the wire once per server."""
        from redis.exceptions import NoScriptError

        try:
            return self.call("EVALSHA", script.sha, len(keys), *keys, *arguments)
        except WireFailure as failure:
            if not isinstance(failure.cause, NoScriptError):
                raise
        return self.call("EVAL", script.text, len(keys), *keys, *arguments)

    def close(self) -> None:
        self._open = False
        self._connection.disconnect()

    def _connect(self) -> None:
        from redis.exceptions import RedisError

        try:
            if self._went_stale():
                self.close()
            self._connection.connect()
            self._open = True
        except (RedisError, OSError) as error:
            self.close()
            raise WireFailure(Phase.CONNECT, self.address[0], error) from error

    def _went_stale(self) -> bool:
        """An idle connection that has something to read was closed, or is out of step."""
        from redis.exceptions import RedisError

        if not self._open:
            return False
        try:
            return bool(self._connection.can_read(timeout=0))
        except (RedisError, OSError):
            return True

    def _forget_unless_answered(self, error: Exception) -> None:
        from redis.exceptions import ResponseError

        if not isinstance(error, ResponseError):
            self.close()  # its late answer must not be read as the next one's
