"""One connection to one member of etcd, by its public JSON gateway over plain HTTP."""

from __future__ import annotations

import json
import select
import socket
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from lockcheck.history import EventType, Refusal
from lockcheck.servers.wire import Address, ErrorRow, Phase, WireFailure
from lockcheck.servers.wire.http import HTTP_ERRORS, HttpNode

if TYPE_CHECKING:
    from http.client import HTTPConnection

Body = dict[str, Any]  # a message of etcd's API, as JSON


class EtcdError(Exception):
    """An answer other than success."""


class GaveUpError(TimeoutError):
    """The client did not wait any longer for an answer that may take long."""


class EtcdNotFoundError(EtcdError):
    """No such lease."""


class EtcdExhaustedError(EtcdError):
    """Too many requests, or no space: it was refused before it was proposed."""


class EtcdUnavailableError(EtcdError):
    """No leader, a leader that changed, a timeout of its own: it may have been proposed."""


# By the gRPC code of the answer.
_KINDS: dict[object, type[EtcdError]] = {
    5: EtcdNotFoundError,
    8: EtcdExhaustedError,
    14: EtcdUnavailableError,
}

LOOK_S = 0.05  # how often a watch checks whether to go on

# The first row that fits decides.
ETCD_ERRORS = (
    ErrorRow("command", "EtcdNotFoundError", EventType.FAIL, "the lease is gone", Refusal.GONE),
    ErrorRow("command", "EtcdExhaustedError", EventType.FAIL, "refused before it was proposed"),
    ErrorRow(
        "command", "EtcdUnavailableError", EventType.INFO, "sent, but the cluster could not confirm"
    ),
    *HTTP_ERRORS,
)


def as_bytes(text: str) -> str:
    return b64encode(text.encode()).decode()


def from_bytes(value: str) -> str:
    return b64decode(value).decode()


def end_of_prefix(prefix: str) -> str:
    """The first key after all keys with this prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


class EtcdNode(HttpNode):
    def call(self, path: str, body: Body, timeout_s: float | None = None) -> Body:
        """One request, sent once. `path` is the gateway's, like `kv/txn`."""
        with self._asking(timeout_s or self._timeout_s) as connection:
            _send(connection, path, body)
            return self._answer(connection)

    def call_patiently(self, path: str, body: Body, goes_on: Callable[[], bool]) -> Body:
        """As `call`, for an answer that may take long: waits while `goes_on()` is true. Giving up
        closes the connection, so that the server stops waiting, too."""
        with self._asking(self._timeout_s) as connection:
            _send(connection, path, body)
            while not select.select([connection.sock], [], [], LOOK_S)[0]:
                if not goes_on():
                    raise GaveUpError("waited too long")
            return self._answer(connection)

    def _answer(self, connection: HTTPConnection) -> Body:
        response = connection.getresponse()
        answer: Body = json.loads(response.read())
        if response.status != 200 or "error" in answer:  # in a stream, its first message has it
            raise self.failure(Phase.COMMAND, _error_in(answer))
        return answer

    def await_deletion(self, key: str, revision: int, left_s: Callable[[], float]) -> bool:
        """Whether the key is deleted, from this revision on, before `left_s()` is 0."""
        ask = {"key": as_bytes(key), "start_revision": revision, "filters": ["NOPUT"]}
        body = json.dumps({"create_request": ask}).encode()
        head = f"POST /v3/watch HTTP/1.0\r\nHost: etcd\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            stream = socket.create_connection(self.address, min(self._timeout_s, left_s() or 0.001))
        except OSError as error:
            raise self.failure(Phase.CONNECT, error) from error
        with stream:
            try:
                stream.sendall(head.encode() + body)
                return self._read_deletion(stream, left_s)
            except (OSError, ValueError, EtcdError) as error:
                raise self.failure(Phase.COMMAND, error) from error

    def _read_deletion(self, stream: socket.socket, left_s: Callable[[], float]) -> bool:
        received, answers_by = b"", time.monotonic() + self._timeout_s
        while (left := left_s()) > 0:
            stream.settimeout(min(left, LOOK_S))
            with suppress(TimeoutError):
                if not (chunk := stream.recv(1 << 16)):
                    raise ConnectionResetError("the watch was ended")
                received += chunk
            *lines, received = received.split(b"\n")
            messages = [json.loads(line) for line in lines if line.startswith(b"{")]
            for message in messages:
                if "error" in message or message["result"].get("canceled"):
                    raise _error_in(message)
                if message["result"].get("events"):
                    return True
            answers_by = float("inf") if messages else answers_by
            if time.monotonic() > answers_by:
                raise TimeoutError("the watch was not created in time")
        return False


class EtcdMembers:
    """Asks one member at a time; after a failure, the next one."""

    def __init__(self, addresses: Sequence[Address], timeout_s: float, first: int = 0) -> None:
        self._nodes = [EtcdNode(address, timeout_s) for address in addresses]
        self._current = first % len(self._nodes)

    def call(self, path: str, body: Body, timeout_s: float | None = None) -> Body:
        with self.one() as node:
            return node.call(path, body, timeout_s)

    @contextmanager
    def one(self) -> Iterator[EtcdNode]:
        try:
            yield self._nodes[self._current]
        except WireFailure as failure:
            if not isinstance(failure.cause, EtcdNotFoundError):  # the member is fine
                self._current = (self._current + 1) % len(self._nodes)
            raise

    def __len__(self) -> int:
        return len(self._nodes)

    def close(self) -> None:
        for node in self._nodes:
            node.close()


def _send(connection: HTTPConnection, path: str, body: Body) -> None:
    connection.request("POST", f"/v3/{path}", json.dumps(body))


def _error_in(answer: Body) -> EtcdError:
    """Of `{error, code, message}`; in a stream the same below `error`, or a failed result."""
    error = answer.get("error", answer)
    if not isinstance(error, dict):
        error = answer
    code = error.get("code", error.get("grpc_code"))
    message = error.get("message") or error.get("error") or json.dumps(error)
    return _KINDS.get(code, EtcdError)(str(message))
