"""What tests of `lockcheck serve` share: a server on a free port, and how it is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest

from lockcheck.serve import index
from lockcheck.serve.server import LOOPBACK, Server, listening
from tests.results.conftest import browser

__all__ = ["browser"]  # a fixture


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class Served:
    server: Server

    @property
    def address(self) -> str:
        return self.server.address

    def ask(self, path: str, method: str = "GET", host: str | None = "localhost") -> Answer:
        connection = HTTPConnection(LOOPBACK, self.server.server_address[1], timeout=30)
        connection.putrequest(method, path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        body = answer.read()
        connection.close()
        return Answer(answer.status, headers, body)


Serve = Callable[..., Served]


@contextmanager
def under_service(folder: Path, host: str = LOOPBACK) -> Iterator[Served]:
    with listening(folder, host, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield Served(server)
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts servers, which look anew for each request."""
    monkeypatch.setattr(index, "LOOK_EVERY_S", 0.0)
    with ExitStack() as stack:
        yield lambda folder, **more: stack.enter_context(under_service(folder, **more))
