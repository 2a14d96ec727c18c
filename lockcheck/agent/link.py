"""The pipe to a run's agent: requests and replies, and events that it sends by itself.

JSON, one object a line. The side of the CLI; `agent.py` is the other side.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from itertools import count
from typing import Protocol

import msgspec

from lockcheck.errors import ClusterError
from lockcheck.history import Event

HEARING_TIMEOUT_S = 30.0
NO_REPLY = 0


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    id: int  # of its reply; NO_REPLY: nobody waits for one
    do: str
    body: object = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """From the agent: the reply to a request, an event of the history, the end of a node, or a
    piece of the output of a program or connection."""

    re: int | None = None
    body: object = None
    error: str | None = None
    cure: str = ""
    event: Event | None = None
    ended: str | None = None  # this node's process has ended although nobody ended it ...
    last_words: str = ""  # ... and this is what it said last
    stream: int | None = None
    data: bytes = b""
    over: bool = False  # nothing more comes of that stream ...
    code: int | None = None  # ... and this is how its program ended


class ByteReader(Protocol):
    def readline(self) -> bytes: ...


class ByteWriter(Protocol):
    def write(self, data: bytes, /) -> object: ...
    def flush(self) -> object: ...
    def close(self) -> object: ...


Listener = Callable[[Message], None]


class AgentLink:
    """Requests from any thread; messages that are no replies go to the listener, on another one."""

    def __init__(self, to_agent: ByteWriter, from_agent: ByteReader) -> None:
        self._to_agent = to_agent
        self._from_agent = from_agent
        self._sending = threading.Lock()
        self._asked: dict[int, queue.SimpleQueue[Message | None]] = {}
        self._listener: Listener = lambda _message: None
        self._ids = count(NO_REPLY + 1)
        self.gone = threading.Event()
        self._reader = threading.Thread(target=self._read, name="agent-link", daemon=True)
        self._reader.start()

    def listen(self, listener: Listener) -> None:
        self._listener = listener

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
        if self.gone.is_set():
            raise self._lost(request.do)
        try:
            with self._sending:
                self._to_agent.write(line)
                self._to_agent.flush()
        except (OSError, ValueError) as error:
            raise self._lost(request.do) from error

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
            raise self._lost(do)
        if message.error is not None:
            raise ClusterError(message.error, cure=message.cure)
        return message.body

    def _lost(self, do: str) -> ClusterError:
        return ClusterError(
            f"the run's agent exited before it answered {do!r}",
            cure="see nodes/agent.log in the run's folder",
        )

    def _read(self) -> None:
        decode = msgspec.json.Decoder(Message).decode
        try:
            while line := self._from_agent.readline():
                message = decode(line)
                if message.re is None:
                    self._listener(message)
                elif reply := self._asked.get(message.re):
                    reply.put(message)
        except (OSError, ValueError):
            pass  # the pipe was closed under us: the same as its end
        finally:
            self.gone.set()  # first: later requests fail at once
            for waiting in list(self._asked.values()):
                waiting.put(None)

    def close(self) -> None:
        """The agent takes the end of its input as the end of the run."""
        try:
            self._to_agent.close()
        except OSError:
            return  # it is gone already
