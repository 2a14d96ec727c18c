"""The near end of `relays.py`: connects clients to servers that are there already, from the network
of the command line, and to no other address."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial

from lockcheck.agent.flow import Pump
from lockcheck.agent.link import AgentLink, Message
from lockcheck.agent.orders import Piece, Taken
from lockcheck.agent.relays import first_of
from lockcheck.errors import ClusterError, UserError
from lockcheck.nodes.node import NodeSpec, address_words
from lockcheck.servers.wire import Address

CONNECTS_S = 5.0


def check_reachable(nodes: Iterable[NodeSpec]) -> None:
    """Raises a UserError that names a server which is not there."""
    for node in nodes:
        if node.elsewhere is None:
            continue
        try:
            socket.create_connection(node.elsewhere, CONNECTS_S).close()
        except OSError as error:
            raise UserError(
                f"{node.kind} at {address_words(node.elsewhere)} cannot be reached: "
                f"{error.strerror or error}",
                cure="start it, or correct --servers: it is connected to from here, and by TCP",
            ) from error


class Outlet:
    """To be closed at the end, before the link."""

    def __init__(self, link: AgentLink, nodes: Iterable[NodeSpec]) -> None:
        self._link = link
        self._servers: Mapping[str, Address] = {
            node.name: node.elsewhere for node in nodes if node.elsewhere
        }
        self._open: dict[int, Pump] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="lockcheck-outlet", daemon=True
        )
        self._thread.start()
        link.relay(self._hear)

    def _hear(self, message: Message) -> None:
        """On the thread that reads the pipe."""
        with suppress(RuntimeError):  # the loop is closed: we have left
            self._loop.call_soon_threadsafe(self._take, message)

    def _take(self, message: Message) -> None:
        stream = message.stream or 0
        if message.to:
            pump = Pump(partial(self._send, stream), partial(self._report, stream))
            self._open[stream] = pump
            self._loop.create_task(self._carry(stream, pump, self._servers[message.to]))
        elif pump_there := self._open.get(stream):
            pump_there.make_room(message.taken)
            if message.data:
                pump_there.take(message.data)
            if message.over:
                pump_there.take(b"")

    async def _carry(self, stream: int, pump: Pump, to: Address) -> None:
        with suppress(OSError):  # refused, or not in time: the client sees it closed
            async with asyncio.timeout(CONNECTS_S):
                reader, writer = await asyncio.open_connection(*to)
            await first_of(pump.send_all(reader), pump.write_all(writer))
            writer.close()
        del self._open[stream]
        self._send(stream, b"")

    def _send(self, stream: int, data: bytes) -> None:
        """Empty data is the end."""
        with suppress(ClusterError):  # the agent is gone
            self._link.tell("send", Piece(stream, data))

    def _report(self, stream: int, number: int) -> None:
        with suppress(ClusterError):
            self._link.tell("taken", Taken(stream, number))

    def close(self) -> None:
        async def leave() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(leave(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
