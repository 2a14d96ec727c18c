"""Streams between a user's test and the nodes: of programs, and of forwarded connections.

Each stream carries bytes in both directions, and has a number that the other side chose.
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

from lockcheck.agent.fleet import Fleet, its_program
from lockcheck.agent.link import Message, taking
from lockcheck.agent.orders import ConnectOrders, Piece, ProgramOrders, Signal
from lockcheck.client.worker import OUTPUT
from lockcheck.errors import UserError
from lockcheck.nodes.node import Node, children_of
from lockcheck.servers.wire import Address

CHUNK = 1 << 16
LAST_WORDS_S = 0.5  # to read the rest of a program's output once it has ended

Send = Callable[[Message], None]


class Stream(Protocol):
    def take(self, data: bytes) -> None:
        """Takes bytes from the other side; an empty piece is the end."""


class Streams:
    """Starts programs and connections on request, and passes their bytes on."""

    def __init__(self, fleet: Fleet, workdir: Path, send: Send) -> None:
        self._fleet = fleet
        self._workdir = workdir
        self._send = send
        self._open: dict[int, Stream] = {}
        self.requests = {
            "run": taking(ProgramOrders, self._run),
            "connect": taking(ConnectOrders, self._connect),
            "send": taking(Piece, self._take),
            "signal": taking(Signal, self._signal),
        }
        self._following: set[asyncio.Task[None]] = set()

    async def _run(self, orders: ProgramOrders) -> None:
        """Replies once the program is started and faults can strike it."""
        node = self._fleet.nodes[orders.node]
        if node.down:
            raise UserError(f"{orders.node} is down", cure="heal the fault that has ended it first")
        with (self._workdir / orders.node / OUTPUT).open("ab") as errors:
            started = node.spawn_program(orders.command, orders.environment, errors)
        if node.enter:
            await its_program(started, orders.node)
        program = RunningProgram(started, entered=bool(node.enter))
        self._open[orders.stream] = program
        following = asyncio.create_task(self._follow(orders.stream, program))
        self._following.add(following)
        following.add_done_callback(self._following.discard)

    async def _follow(self, stream: int, program: RunningProgram) -> None:
        code = await program.follow(lambda data: self._send(Message(stream=stream, data=data)))
        self._open.pop(stream, None)
        self._send(Message(stream=stream, over=True, code=code))

    async def _connect(self, orders: ConnectOrders) -> None:
        """Returns when the connection is closed."""
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

    async def _take(self, piece: Piece) -> None:
        if stream := self._open.get(piece.stream):  # otherwise it has ended already
            stream.take(piece.data)

    async def _signal(self, orders: Signal) -> None:
        program = self._open.get(orders.stream)
        if isinstance(program, RunningProgram):
            program.signal(signal.Signals(orders.number))


class RunningProgram:
    """A user's program with pipes for its input and output."""

    def __init__(self, started: subprocess.Popen[bytes], *, entered: bool) -> None:
        self._started = started
        self._entered = entered  # in a container the program is a child of the started process
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

    async def follow(self, on_output: Callable[[bytes], None]) -> int:
        """Passes its output on; returns its exit code even if others hold its output open."""
        loop = asyncio.get_running_loop()
        self._input, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self._started.stdin)
        for data in self._early:
            self.take(data)
        output = asyncio.StreamReader()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(output), self._started.stdout
        )
        reading = asyncio.create_task(_read_all(output, on_output))
        await _end_of(self._started.pid)
        await asyncio.wait((reading,), timeout=LAST_WORDS_S)
        reading.cancel()
        self._input.close()
        return self._started.wait()


async def _read_all(source: asyncio.StreamReader, on_data: Callable[[bytes], None]) -> None:
    while data := await source.read(CHUNK):
        on_data(data)


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
    """A connection from a node's network: a cut of that node cuts it, too."""

    def __init__(self) -> None:
        self._to_go: asyncio.Queue[bytes] = asyncio.Queue()

    def take(self, data: bytes) -> None:
        self._to_go.put_nowait(data)

    async def carry(self, via: Node, to: Address, on_data: Callable[[bytes], None]) -> None:
        """Passes bytes on until the far end closes the connection, or it breaks."""
        with via.inside_network():
            connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, to)
            reader, writer = await asyncio.open_connection(sock=connection)
            sending = asyncio.create_task(self._send_all(writer))
            try:
                await _read_all(reader, on_data)
            finally:
                sending.cancel()
                writer.close()
        except OSError:
            return  # refused, or broken: the near end sees it closed
        finally:
            connection.close()

    async def _send_all(self, writer: asyncio.StreamWriter) -> None:
        while data := await self._to_go.get():
            writer.write(data)
            await writer.drain()
        writer.write_eof()
