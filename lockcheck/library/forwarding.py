"""Ports on this host's loopback that are forwarded to servers, through a node's network.

A connection is accepted here, carried through the agent's pipe, and opened again from the node: so
it works with an engine on another host, too, and a cut of the node cuts it.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from functools import partial

from msgspec import structs

from lockcheck.agent.flow import Pump
from lockcheck.agent.link import Message
from lockcheck.agent.orders import ConnectOrders
from lockcheck.errors import ClusterError
from lockcheck.library.switchboard import Switchboard

LOOPBACK = "127.0.0.1"


class Forwarding:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._open: dict[asyncio.StreamWriter, Pump] = {}
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="lockcheck-forwarding", daemon=True
        )
        self._thread.start()

    def open(self, switchboard: Switchboard, via: str, to: str, port: int) -> tuple[str, int]:
        """Returns the address on loopback: the kernel chooses the port."""
        if switchboard.link.gone.is_set():
            raise switchboard.link.lost("forward")
        serve = partial(self._serve, switchboard, ConnectOrders(0, via, to, port))
        starting = asyncio.start_server(serve, LOOPBACK, 0)
        server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self._servers.append(server)
        host, number = server.sockets[0].getsockname()
        return str(host), int(number)

    async def _serve(
        self,
        switchboard: Switchboard,
        orders: ConnectOrders,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        def hear(message: Message) -> None:
            with suppress(RuntimeError):  # the loop is closed: we have left
                self._loop.call_soon_threadsafe(_deliver, pump, message)

        stream = switchboard.new(hear)
        pump = Pump(partial(switchboard.send, stream), partial(switchboard.report, stream))
        self._open[writer] = pump
        sending = asyncio.create_task(_send(switchboard, stream, pump, reader))
        try:
            with suppress(ClusterError):  # the cluster is gone
                switchboard.link.tell("connect", structs.replace(orders, stream=stream))
                await pump.write_all(writer)
        finally:
            sending.cancel()
            writer.close()
            del self._open[writer]

    def close(self) -> None:
        async def leave() -> None:
            for server in self._servers:
                server.close()
            for writer, pump in self._open.items():
                pump.take(b"")
                writer.transport.abort()
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others)

        asyncio.run_coroutine_threadsafe(leave(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _send(
    switchboard: Switchboard, stream: int, pump: Pump, reader: asyncio.StreamReader
) -> None:
    with suppress(ClusterError):
        with suppress(OSError):  # a connection that breaks has ended
            await pump.send_all(reader)
        switchboard.send(stream, b"")


def _deliver(pump: Pump, message: Message) -> None:
    pump.make_room(message.taken)
    if message.data:
        pump.take(message.data)
    if message.over:
        pump.take(b"")
