"""Starts users' programs in the containers beside their clients', when those ask for it.

A client connects to its door, a socket in its folder, and passes on three pipes: they become the
program's input and output, without anything in between. One connection is one life of the program:
when the client closes it, the program is killed with all that it started; when the program ends,
the client is sent how.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from lockcheck.agent.entering import Container
from lockcheck.agent.place import PlacedNode
from lockcheck.agent.streams import end_of
from lockcheck.backends.program.beside import DOOR, LONGEST_COMMAND, Begin, Begun, Over
from lockcheck.nodes.waiting import wait_until

END_TIMEOUT_S = 10.0
STREAMS = 3


class Doors:
    def __init__(self, workdir: Path) -> None:
        self._workdir = workdir
        self._attending: set[asyncio.Task[None]] = set()

    def open(self, nodes: Iterable[PlacedNode]) -> None:
        for node in nodes:
            if beside := node.beside:
                listening = socket.socket(socket.AF_UNIX)
                listening.bind(str(self._workdir / node.name / DOOR))
                listening.listen()
                listening.setblocking(False)
                self._attending.add(asyncio.create_task(_attend(node, beside, listening)))


async def _attend(node: PlacedNode, beside: Container, listening: socket.socket) -> None:
    """One life after the other: one that ends takes all that is left in the container."""
    loop = asyncio.get_running_loop()
    while True:
        connection, _ = await loop.sock_accept(listening)
        with connection:
            connection.setblocking(False)
            with suppress(OSError, msgspec.DecodeError):  # its client is gone
                await _one_life(node, beside, connection)


async def _one_life(node: PlacedNode, beside: Container, connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    await _readable(connection)
    data, streams, _, _ = socket.recv_fds(connection, LONGEST_COMMAND, STREAMS)
    try:
        command = msgspec.json.decode(data, type=Begin).command
        began = beside.spawn(command, streams, {})
    except OSError as error:
        await loop.sock_sendall(connection, _line(Begun(error.errno or 0, error.strerror or "")))
        return
    finally:
        for stream in streams:
            os.close(stream)
    try:
        await loop.sock_sendall(connection, _line(Begun()))
        await _first_of(end_of(began.pid), _readable(connection))
    finally:
        await _kill_all(node, beside)
    await loop.sock_sendall(connection, _line(Over(began.wait())))


def _line(message: msgspec.Struct) -> bytes:
    return msgspec.json.encode(message) + b"\n"


async def _first_of(*waits: Coroutine[None, None, None]) -> None:
    tasks = [asyncio.create_task(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _readable(connection: socket.socket) -> None:
    """Also when the other end was closed."""
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(connection)


async def _kill_all(node: PlacedNode, beside: Container) -> None:
    """What was started in the container beside, and all that it started."""

    def gone() -> bool:
        left = [pid for pid in node.pids() if beside.has(pid)]
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    await wait_until(gone, f"{node.name}'s program still has processes", END_TIMEOUT_S, 0.002)
