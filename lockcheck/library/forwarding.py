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

from lockcheck.agent.link import Message
from lockcheck.agent.orders import ConnectOrders
from lockcheck.errors import ClusterError
from lockcheck.library.switchboard import Switchboard

LOOPBACK = "127.0.0.1"
CHUNK = 1 << 16


class Forwarding:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="lockcheck-forwarding", daemon=True
        )
        self._thread.start()

    def open(self, switchboard: Switchboard, via: str, to: str, port: int) -> tuple[str, int]:
        """Returns the address on loopback: the kernel chooses the port."""
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
                self._loop.call_soon_threadsafe(_deliver, writer, message)

        stream = switchboard.new(hear)
        self._writers.add(writer)
        try:
            switchboard.link.tell("connect", structs.replace(orders, stream=stream))
            while data := await reader.read(CHUNK):
                switchboard.send(stream, data)
            switchboard.send(stream, b"")
            await writer.wait_closed()  # what comes back may come later
        except (ClusterError, OSError):  # the cluster or the connection is gone
            writer.close()
        finally:
            self._writers.discard(writer)

    def close(self) -> None:
        async def leave() -> None:
            for server in self._servers:
                server.close()
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

        asyncio.run_coroutine_threadsafe(leave(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _deliver(writer: asyncio.StreamWriter, message: Message) -> None:
    if message.data:
        writer.write(message.data)
    if message.over:
        writer.close()
