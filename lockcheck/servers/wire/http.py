"""One HTTP connection to one member of a cluster, without a pool: a call has a deadline, is sent
once, and fails with the phase that it had reached."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from typing import TYPE_CHECKING

from lockcheck.history import EventType
from lockcheck.servers.wire import Address, ErrorRow, Phase, WireFailure

if TYPE_CHECKING:
    from http.client import HTTPConnection

# The first row that fits decides; a TimeoutError is an OSError, so it comes before it.
HTTP_ERRORS = (
    ErrorRow("connect", "OSError", EventType.FAIL, "could not connect, so nothing was sent"),
    ErrorRow("command", "TimeoutError", EventType.INFO, "sent, but not answered in time"),
    ErrorRow("command", "HTTPException", EventType.INFO, "sent, but the connection broke"),
    ErrorRow("command", "OSError", EventType.INFO, "sent, but the connection broke"),
)


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Message
    body: bytes


class HttpNode:
    def __init__(self, address: Address, timeout_s: float) -> None:
        from http.client import HTTPConnection

        self.address = address
        self._timeout_s = timeout_s
        self._connection = HTTPConnection(*address)

    def ask(
        self, method: str, path: str, body: bytes | None = None, timeout_s: float | None = None
    ) -> Response:
        """One request, sent once; returns any status."""
        with self._asking(timeout_s or self._timeout_s) as connection:
            connection.request(method, path, body)
            response = connection.getresponse()
            return Response(response.status, response.headers, response.read())

    @contextmanager
    def _asking(self, timeout_s: float) -> Iterator[HTTPConnection]:
        """The connection for one request and its answer; raises WireFailure for their errors."""
        from http.client import HTTPException

        self._connect(timeout_s)
        try:
            yield self._connection
        except (OSError, HTTPException, ValueError) as error:
            self.close()  # a late answer must not be read as that to the next request
            raise self.failure(Phase.COMMAND, error) from error

    def close(self) -> None:
        self._connection.close()

    def failure(self, phase: Phase, cause: Exception) -> WireFailure:
        return WireFailure(phase, self.address[0], cause)

    def _connect(self, timeout_s: float) -> None:
        if self._went_stale():
            self.close()
        self._connection.timeout = timeout_s
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout_s)
            return
        try:
            self._connection.connect()
        except OSError as error:
            self.close()
            raise self.failure(Phase.CONNECT, error) from error

    def _went_stale(self) -> bool:
        """Whether the idle connection has something to read: it was closed, or is out of step."""
        sock = self._connection.sock
        return sock is not None and bool(select.select([sock], [], [], 0)[0])
