"""The command line's end of the pipe to a run's agent: requests, replies and events.

JSON, one object a line. `agent.py` is the other end.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Protocol, TypeVar

import msgspec

from lockcheck.errors import ClusterError, UserError
from lockcheck.history import Event

HEARING_TIMEOUT_S = 30.0
LONGEST_REQUEST = 1 << 24
NO_REPLY = 0


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    id: int  # of its reply; NO_REPLY: it has none
    do: str
    body: object = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """From the agent: a reply, an event, the end of a node, or a piece of a stream."""

    re: int | None = None
    body: object = None
    error: str | None = None
    cure: str = ""
    event: Event | None = None
    ended: str | None = None  # the name of a node whose process exited unexpectedly ...
    last_words: str = ""  # ... and the end of its output
    stream: int | None = None  # below 0: of a relay
    to: str = ""  # the server that a new stream of a relay is to be connected to
    data: bytes = b""
    taken: int = 0  # how many more of the bytes that were sent into it have left it
    over: bool = False  # the stream has ended ...
    code: int | None = None  # ... and the exit code of its program


T = TypeVar("T")
Handler = Callable[[object], Awaitable[object]]


def taking(kind: type[T], handle: Callable[[T], Awaitable[object]]) -> Handler:
    """Handles requests whose bodies are of this kind."""
    return lambda body: handle(msgspec.convert(body, kind))


class ByteReader(Protocol):
    def readline(self) -> bytes: ...
    def close(self) -> object: ...


class ByteWriter(Protocol):
    def write(self, data: bytes, /) -> object: ...
    def flush(self) -> object: ...
    def close(self) -> object: ...


Listener = Callable[[Message], None]


class AgentLink:
    """Sends requests from any thread; other messages go to the listener, on another thread."""

    def __init__(self, to_agent: ByteWriter, from_agent: ByteReader) -> None:
        self._to_agent = to_agent
        self._from_agent = from_agent
        self._sending = threading.Lock()
        self._asked: dict[int, queue.SimpleQueue[Message | None]] = {}
        self._listener: Listener = lambda _message: None
        self._relay: Listener = lambda _message: None
        self._on_gone: Callable[[], None] = lambda: None
        self._closed = False
        self._ids = count(NO_REPLY + 1)
        self.gone = threading.Event()
        self._reader = threading.Thread(target=self._read, name="agent-link", daemon=True)
        self._reader.start()

    def listen(self, listener: Listener, on_gone: Callable[[], None] = lambda: None) -> None:
        """Both are called on the thread that reads the pipe."""
        self._listener, self._on_gone = listener, on_gone

    def relay(self, listener: Listener) -> None:
        """It is called with the messages of relays, on the thread that reads the pipe."""
        self._relay = listener

    def ask(self, do: str, body: object = None, timeout_s: float = HEARING_TIMEOUT_S) -> object:
        """Sends a request and waits for its reply."""
        number, reply = next(self._ids), queue.SimpleQueue[Message | None]()
        self._asked[number] = reply
        try:
            self._send(Request(number, do, body))
            return self._await_reply(do, reply, timeout_s)
        finally:
            del self._asked[number]  # a late reply is dropped

    def tell(self, do: str, body: object) -> None:
        """Sends a request without a reply. Requests are begun in the order of sending."""
        self._send(Request(NO_REPLY, do, body))

    def _send(self, request: Request) -> None:
        line = msgspec.json.encode(request) + b"\n"
        if len(line) > LONGEST_REQUEST:
            raise UserError(
                f"{request.do!r} with {len(line):,} bytes is too much at once",
                cure=f"less than {LONGEST_REQUEST:,} bytes; or put it into a file",
            )
        if self.gone.is_set():
            raise self.lost(request.do)
        try:
            with self._sending:
                self._to_agent.write(line)
                self._to_agent.flush()
        except (OSError, ValueError) as error:
            raise self.lost(request.do) from error

    def _await_reply(
        self, do: str, reply: queue.SimpleQueue[Message | None], timeout_s: float
    ) -> object:
        try:
            message = reply.get(timeout=timeout_s)
        except queue.Empty:
            raise ClusterError(
                f"the run's agent did not answer {do!r} within {timeout_s:.0f} s",
                cure="the machine is overloaded, or the agent hangs: see nodes/agent.log",
            ) from None
        if message is None:
            raise self.lost(do)
        if message.error is not None:
            raise ClusterError(message.error, cure=message.cure)
        return message.body

    def lost(self, do: str) -> ClusterError:
        if self._closed:
            return ClusterError(
                f"the cluster has ended, so it cannot {do!r}", cure="use it within its `with` block"
            )
        return ClusterError(
            f"the run's agent exited before it answered {do!r}",
            cure="see nodes/agent.log in the run's folder",
        )

    def _read(self) -> None:
        decode = msgspec.json.Decoder(Message).decode
        try:
            while line := self._from_agent.readline():
                message = decode(line)
                if message.stream is not None and message.stream < 0:
                    self._relay(message)
                elif message.re is None:
                    self._listener(message)
                elif reply := self._asked.get(message.re):
                    reply.put(message)
        except (OSError, ValueError):
            pass  # the pipe was closed meanwhile: the same as its end
        finally:
            self.gone.set()  # first: later requests fail at once
            for waiting in list(self._asked.values()):
                waiting.put(None)
            self._on_gone()
            self._from_agent.close()

    def await_end(self, timeout_s: float) -> None:
        """Returns when the agent has closed its output, and this end of it is closed, too."""
        self._reader.join(timeout_s)

    def close(self) -> None:
        """Closes the agent's input, which ends the run."""
        self._closed = True
        try:
            self._to_agent.close()
        except OSError:
            return  # it is gone already
