"""The pipe to a run's agent: requests and replies, and the events that it sends of its own accord.

JSON, one object a line. The side of the CLI; `agent.py` is the other side.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Protocol

import msgspec

from lockcheck.errors import ClusterError
from lockcheck.history import Event

HEARING_TIMEOUT_S = 30.0


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    id: int
    do: str
    body: object = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """From the agent: the reply to a request, an event of the history, or a word on a node."""

    re: int | None = None
    body: object = None
    error: str | None = None
    cure: str = ""
    event: Event | None = None
    ended: str | None = None  # this node's process has ended although nobody ended it ...
    last_words: str = ""  # ... and this is what it said last


class ByteReader(Protocol):
    def readline(self) -> bytes: ...


class ByteWriter(Protocol):
    def write(self, data: bytes, /) -> object: ...
    def flush(self) -> object: ...
    def close(self) -> object: ...


Listener = Callable[[Message], None]


class AgentLink:
    """One request at a time, from one thread; events are handed to the listener from another."""

    def __init__(self, to_agent: ByteWriter, from_agent: ByteReader) -> None:
        self._to_agent = to_agent
        self._from_agent = from_agent
        self._replies: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._listener: Listener = lambda _message: None
        self._next_id = 0
        self.gone = threading.Event()
        self._reader = threading.Thread(target=self._read, name="agent-link", daemon=True)
        self._reader.start()

    def listen(self, listener: Listener) -> None:
        self._listener = listener

    def ask(self, do: str, body: object = None, timeout_s: float = HEARING_TIMEOUT_S) -> object:
        """Sends a request and waits for its reply."""
        self._next_id += 1
        line = msgspec.json.encode(Request(self._next_id, do, body)) + b"\n"
        try:
            self._to_agent.write(line)
            self._to_agent.flush()
        except (OSError, ValueError) as error:
            raise self._lost(do) from error
        return self._await_reply(do, timeout_s)

    def _await_reply(self, do: str, timeout_s: float) -> object:
        while True:
            try:
                message = self._replies.get(timeout=timeout_s)
            except queue.Empty:
                raise ClusterError(
                    f"the run's agent did not answer {do!r} within {timeout_s:.0f} s",
                    cure="the machine is overloaded, or the agent hangs: see nodes/agent.log",
                ) from None
            if message is None:
                raise self._lost(do)
            if message.re != self._next_id:
                continue  # the late reply to a request that was given up
            if message.error is not None:
                raise ClusterError(message.error, cure=message.cure)
            return message.body

    def _lost(self, do: str) -> ClusterError:
        return ClusterError(
            f"the run's agent went away before it answered {do!r}",
            cure="its last words are in nodes/agent.log of the run's folder",
        )

    def _read(self) -> None:
        decode = msgspec.json.Decoder(Message).decode
        try:
            while line := self._from_agent.readline():
                message = decode(line)
                if message.re is not None:
                    self._replies.put(message)
                else:
                    self._listener(message)
        except (OSError, ValueError):
            pass  # the pipe was closed under us: the same as its end
        finally:
            self.gone.set()
            self._replies.put(None)

    def close(self) -> None:
        """The agent takes the end of its input as the end of the run."""
        try:
            self._to_agent.close()
        except OSError:
            return  # it is gone already
