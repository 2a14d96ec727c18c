"""Numbered streams between this process and programs on nodes: see `agent/streams.py`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count

from lockcheck.agent.link import AgentLink, Message
from lockcheck.agent.orders import Piece, Taken
from lockcheck.errors import ClusterError
from lockcheck.history import Event

Hear = Callable[[Message], None]


class Switchboard:
    def __init__(self, link: AgentLink, note: Callable[[Event], None]) -> None:
        self.link = link
        self._note = note
        self._hearing: dict[int, Hear] = {}
        self._numbers = count(1)
        link.listen(self._pass_on, self._end_all)

    def new(self, hear: Hear) -> int:
        """The number of a new stream; `hear` is called on the thread that reads the pipe."""
        number = next(self._numbers)
        self._hearing[number] = hear
        return number

    def send(self, stream: int, data: bytes) -> None:
        """Empty data is the end."""
        self.link.tell("send", Piece(stream, data))

    def report(self, stream: int, number: int) -> None:
        """So many more of the bytes that came out of the stream are no longer waiting."""
        with suppress(ClusterError):  # it has ended, and sends nothing any more
            self.link.tell("taken", Taken(stream, number))

    def _end_all(self) -> None:
        """The agent is gone."""
        for stream in list(self._hearing):
            self._pass_on(Message(stream=stream, over=True))

    def _pass_on(self, message: Message) -> None:
        if message.event is not None:
            self._note(message.event)
        if message.stream is None:
            return
        if hear := self._hearing.get(message.stream):
            hear(message)
        if message.over:
            self._hearing.pop(message.stream, None)
