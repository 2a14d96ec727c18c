"""Streams between a user's test and the nodes: of programs that it talks to, and of connections.

Each carries bytes in both directions, and has a number that the other side chose.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from lockcheck.agent.fleet import Fleet, its_program
from lockcheck.agent.link import Message
from lockcheck.agent.orders import ConnectOrders, Piece, ProgramOrders, Signal
from lockcheck.client.worker import OUTPUT
from lockcheck.errors import UserError
from lockcheck.nodes.node import Node, children_of
from lockcheck.servers.wire import Address

CHUNK = 1 << 16
LAST_WORDS_S = 0.5  # for what a program has said to be read when it has ended

Send = Callable[[Message], None]


class Stream(Protocol):
    def take(self, data: bytes) -> None:
        """An empty piece is the end."""


class Streams:
    def __init__(self, fleet: Fleet, workdir: Path, send: Send) -> None:
        self._fleet = fleet
        self._workdir = workdir
        self._send = send
        self._open: dict[int, Stream] = {}
        self.requests = {
            "run": self._run,
            "connect": self._connect,
            "send": self._take,
            "signal": self._signal,
        }
        self._following: set[asyncio.Task[None]] = set()

    async def _run(self, body: object) -> object:
        """Replies when it has been started, and faults can strike it."""
        orders = msgspec.convert(body, ProgramOrders)
        place = self._fleet.place(orders.node)
        if place.node.down:
            raise UserError(f"{orders.node} is down", cure="heal the fault that has ended it first")
        with (self._workdir / orders.node / OUTPUT).open("ab") as errors:
            started = place.spawn_program(orders.command, orders.environment, errors)
        if place.enter:
            await its_program(started, orders.node)
        program = RunningProgram(started, entered=bool(place.enter))
        self._open[orders.stream] = program
        following = asyncio.create_task(self._follow(orders.stream, program))
        self._following.add(following)
        following.add_done_callback(self._following.discard)
        return None

    async def _follow(self, stream: int, program: RunningProgram) -> None:
        code = await program.follow(lambda data: self._send(Message(stream=stream, data=data)))
        self._open.pop(stream, None)
        self._send(Message(stream=stream, over=True, code=code))

    async def _connect(self, body: object) -> object:
        """Returns when the connection is over."""
        orders = msgspec.convert(body, ConnectOrders)
        nodes = self._fleet.nodes
        connection = ForwardedConnection()
        self._open[orders.stream] = connection
        address = nodes[orders.to].address, orders.port
        await connection.carry(
            nodes[orders.via],
            address,
            lambda data: self._send(Message(stream=orders.stream, data=data)),
        )
        self._open.pop(orders.stream, None)
        self._send(Message(stream=orders.stream, over=True))
        return None

    async def _take(self, body: object) -> object:
        piece = msgspec.convert(body, Piece)
        if stream := self._open.get(piece.stream):  # else it is over, and the other side learns it
            stream.take(piece.data)
        return None

    async def _signal(self, body: object) -> object:
        orders = msgspec.convert(body, Signal)
        program = self._open.get(orders.stream)
        if isinstance(program, RunningProgram):
            program.signal(signal.Signals(orders.number))
        return None


class RunningProgram:
    def __init__(self, started: subprocess.Popen[bytes], *, entered: bool) -> None:
        self._started = started
        self._entered = entered  # the program is a child of what was started, in a container
        self._input: asyncio.WriteTransport | None = None
        self._early: list[bytes] = []

    def take(self, data: bytes) -> None:
        if self._input is None:
            self._early.append(data)
        elif data:
            self._input.write(data)
        else:
            self._input.close()

    def signal(self, number: signal.Signals) -> None:
        first = self._started.pid
        for pid in children_of(first) if self._entered else [first]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    async def follow(self, tell: Callable[[bytes], None]) -> int:
        """Returns its exit code when it ends, even if others still have its standard output."""
        loop = asyncio.get_running_loop()
        self._input, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self._started.stdin)
        for data in self._early:
            self.take(data)
        said = asyncio.StreamReader()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(said), self._started.stdout
        )
        reading = asyncio.create_task(_read_all(said, tell))
        await _end_of(self._started.pid)
        await asyncio.wait((reading,), timeout=LAST_WORDS_S)
        reading.cancel()
        self._input.close()
        return self._started.wait()


async def _read_all(source: asyncio.StreamReader, tell: Callable[[bytes], None]) -> None:
    while data := await source.read(CHUNK):
        tell(data)


async def _end_of(pid: int) -> None:
    """Waits for the end of a child without reaping it."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    handle = os.pidfd_open(pid)
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


class ForwardedConnection:
    """From a node's network: a cut of that node cuts it, too."""

    def __init__(self) -> None:
        self._to_go: asyncio.Queue[bytes] = asyncio.Queue()

    def take(self, data: bytes) -> None:
        self._to_go.put_nowait(data)

    async def carry(self, via: Node, to: Address, tell: Callable[[bytes], None]) -> None:
        """Until the far end closes it, or it breaks."""
        with via.inside_network():
            connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, to)
            reader, writer = await asyncio.open_connection(sock=connection)
            sending = asyncio.create_task(self._send_all(writer))
            try:
                await _read_all(reader, tell)
            finally:
                sending.cancel()
                writer.close()
        except OSError:
            return  # refused, or broken: whoever is at the near end sees it closed
        finally:
            connection.close()

    async def _send_all(self, writer: asyncio.StreamWriter) -> None:
        while data := await self._to_go.get():
            writer.write(data)
            await writer.drain()
        writer.write_eof()
