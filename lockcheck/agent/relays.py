"""Stands in for servers that are there already: clients connect to a node of the run's own network,
and each connection becomes a stream, whose other end the command line connects to the server.

So nothing of the run's network is opened to the outside, and a cut of a client cuts it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from itertools import count

from lockcheck.agent.link import Message
from lockcheck.agent.place import PlacedNode
from lockcheck.agent.streams import Streams

Send = Callable[[Message], None]


class Relays:
    def __init__(self, streams: Streams, send: Send) -> None:
        self._streams = streams
        self._send = send
        self._numbers = count(1)

    async def open(self, nodes: Iterable[PlacedNode]) -> None:
        """Listens in the place of each server that is there already."""
        for node in nodes:
            if node.spec.elsewhere:
                with node.inside_network():
                    listening = socket.create_server((node.address, node.orders.port))
                await asyncio.start_server(partial(self._serve, node.name), sock=listening)

    async def _serve(
        self, server: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        stream = -next(self._numbers)  # the other side numbers its own upwards
        pump = self._streams.begin(stream)
        self._send(Message(stream=stream, to=server))
        await first_of(pump.send_all(reader), pump.write_all(writer))
        self._streams.end(stream)
        writer.close()
        self._send(Message(stream=stream, over=True))


async def first_of(*directions: Coroutine[None, None, None]) -> None:
    """Until one of them has ended, which may be that its connection broke: then all have."""
    tasks = [asyncio.create_task(each) for each in directions]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
        with suppress(OSError, asyncio.CancelledError):
            await task
