"""Streams between a user's test and the nodes: of programs, and of forwarded connections.

Each stream carries bytes in both directions, and has a number that the other side chose.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lockcheck.agent.fleet import Fleet
from lockcheck.agent.flow import WINDOW, Pump
from lockcheck.agent.link import Message, taking
from lockcheck.agent.orders import ConnectOrders, NotStarted, Piece, ProgramOrders, Signal, Taken
from lockcheck.client.worker import OUTPUT
from lockcheck.nodes.node import Node, children_of
from lockcheck.nodes.waiting import wait_until
from lockcheck.servers.wire import Address

START_TIMEOUT_S = 30.0
CANNOT_EXECUTE = (126, 127)  # the exit codes of those that enter containers, and of shells
ENTERING = (b"setpriv: ", b"nsenter: ")
LAST_WORDS_S = 0.5  # to read the rest of a program's output once it has ended

Send = Callable[[Message], None]


class Streams:
    """Starts programs and connections on request, and passes their bytes on."""

    def __init__(self, fleet: Fleet, workdir: Path, send: Send) -> None:
        self._fleet = fleet
        self._workdir = workdir
        self._send = send
        self._open: dict[int, Pump] = {}
        self._programs: dict[int, RunningProgram] = {}
        self.requests = {
            "run": taking(ProgramOrders, self._run),
            "connect": taking(ConnectOrders, self._connect),
            "send": taking(Piece, self._take),
            "taken": taking(Taken, self._make_room),
            "signal": taking(Signal, self._signal),
        }
        self._following: set[asyncio.Task[None]] = set()

    async def _run(self, orders: ProgramOrders) -> NotStarted | None:
        """Replies once the program is started and faults can strike it."""
        node = self._fleet.nodes[orders.node]
        if node.down:
            return NotStarted(f"{node.name} is down", "heal the fault that has ended it first")
        output = self._workdir / node.name / OUTPUT
        with output.open("ab") as errors:
            before = errors.tell()
            try:
                started = node.spawn_program(orders.command, orders.environment, errors)
            except OSError as error:
                return _not_started(orders, error.strerror or str(error))
        if node.enter and node.beside is None:
            lacking = f"{orders.command[0]} has not started on {node.name}"
            await wait_until(
                lambda: node.has_executed(started, orders.command), lacking, START_TIMEOUT_S
            )
            if started.poll() in CANNOT_EXECUTE and (why := _complaint(output, before)):
                with started:  # closes its pipes
                    return _not_started(orders, why)
        pump = self.begin(orders.stream)
        program = RunningProgram(started, pump, entered=bool(node.enter))
        self._programs[orders.stream] = program
        following = asyncio.create_task(self._follow(orders.stream, program))
        self._following.add(following)
        following.add_done_callback(self._following.discard)
        return None

    def begin(self, stream: int) -> Pump:
        self._open[stream] = Pump(
            lambda data: self._send(Message(stream=stream, data=data)),
            lambda number: self._send(Message(stream=stream, taken=number)),
        )
        return self._open[stream]

    def end(self, stream: int) -> None:
        del self._open[stream]

    async def _follow(self, stream: int, program: RunningProgram) -> None:
        code = await program.follow()
        self.end(stream)
        del self._programs[stream]
        self._send(Message(stream=stream, over=True, code=code))

    async def _connect(self, orders: ConnectOrders) -> None:
        """Returns when the connection is closed."""
        nodes, pump = self._fleet.nodes, self.begin(orders.stream)
        with suppress(OSError):  # refused, or broken: the near end sees it closed
            await _carry(pump, nodes[orders.via], (nodes[orders.to].address, orders.port))
        self.end(orders.stream)
        self._send(Message(stream=orders.stream, over=True))

    async def _take(self, piece: Piece) -> None:
        if pump := self._open.get(piece.stream):  # otherwise it has ended already
            pump.take(piece.data)

    async def _make_room(self, taken: Taken) -> None:
        if pump := self._open.get(taken.stream):
            pump.make_room(taken.number)

    async def _signal(self, orders: Signal) -> None:
        if program := self._programs.get(orders.stream):
            program.signal(orders.number)


def _not_started(orders: ProgramOrders, why: str) -> NotStarted:
    return NotStarted(
        f"{orders.command[0]} cannot be run on {orders.node}: {why}",
        "name a program that is there, in `local` of this host, in `docker` of the image",
    )


def _complaint(output: Path, since: int) -> str:
    """Of what enters containers, about the program; empty if the program itself has ended."""
    with output.open("rb") as lines:
        lines.seek(since)
        for line in lines:
            if line.startswith(ENTERING):
                return line.decode(errors="replace").strip()
    return ""


class RunningProgram:
    """A user's program with pipes for its input and output."""

    def __init__(self, started: subprocess.Popen[bytes], pump: Pump, *, entered: bool) -> None:
        self._started = started
        self._pump = pump
        self._entered = entered  # in a container the program is a child of the started process

    def signal(self, number: int) -> None:
        first = self._started.pid
        for pid in children_of(first) if self._entered else [first]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    async def follow(self) -> int:
        """Passes its output on; returns its exit code even if others hold its output open."""
        loop = asyncio.get_running_loop()
        output = asyncio.StreamReader()
        out, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(output), self._started.stdout
        )
        into, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), self._started.stdin
        )
        target = asyncio.StreamWriter(into, protocol, None, loop)
        writing = asyncio.create_task(self._pump.write_all(target))
        reading = asyncio.create_task(self._pump.send_all(output))
        if self._started.poll() is None:
            await end_of(self._started.pid)
        self._pump.make_room(WINDOW)  # for what is left in the pipe
        await asyncio.wait((reading,), timeout=LAST_WORDS_S)
        for task in (reading, writing):
            task.cancel()
        out.close()
        if not into.is_closing():
            into.abort()
        return self._started.wait()


async def end_of(pid: int) -> None:
    """Waits for the end of a child without reaping it."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    handle = os.pidfd_open(pid)
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def _carry(pump: Pump, via: Node, to: Address) -> None:
    """A connection from a node's network, until the far end closes it: a cut of that node cuts it,
    too."""
    with via.inside_network():
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connection, to)
        reader, writer = await asyncio.open_connection(sock=connection)
        writing = asyncio.create_task(_write_to_the_end(pump, writer))
        try:
            await pump.send_all(reader)
        finally:
            writing.cancel()
            writer.close()
    finally:
        connection.close()


async def _write_to_the_end(pump: Pump, writer: asyncio.StreamWriter) -> None:
    await pump.write_all(writer)
    if not writer.is_closing():
        writer.write_eof()
