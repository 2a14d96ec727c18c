"""The flow of a stream: each end sends on only while the other takes what came.

So at most WINDOW bytes of a stream wait anywhere, however much a program prints or is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

WINDOW = 1 << 21  # bytes that were sent into a stream and not taken out of it
REPORTED = WINDOW // 8  # as soon as so many were taken, the other end learns of them
CHUNK = 1 << 16


class Receipts:
    """Reports to the other end what was taken, now and then."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report = report
        self._number = 0

    def add(self, number: int) -> None:
        self._number += number
        if self._number >= REPORTED:
            self._report(self._number)
            self._number = 0


class Pump:
    """Carries bytes between a stream and a pipe or a connection, in an event loop."""

    def __init__(self, send: Callable[[bytes], None], report: Callable[[int], None]) -> None:
        self._send = send
        self._receipts = Receipts(report)
        self._come: asyncio.Queue[bytes] = asyncio.Queue()
        self._under_way = 0
        self._room = asyncio.Event()
        self._room.set()

    def take(self, data: bytes) -> None:
        """Takes bytes out of the stream; an empty piece is the end."""
        self._come.put_nowait(data)

    def make_room(self, number: int) -> None:
        """The other end has taken so many bytes."""
        self._under_way -= number
        if self._under_way < WINDOW:
            self._room.set()

    async def send_all(self, source: asyncio.StreamReader) -> None:
        """Sends what can be read, to the end."""
        while data := await source.read(CHUNK):
            self._send(data)
            self._under_way += len(data)
            if self._under_way >= WINDOW:
                self._room.clear()
            await self._room.wait()

    async def write_all(self, target: asyncio.StreamWriter) -> None:
        """Writes what comes out of the stream, to the end; drops what is no longer read there."""
        while data := await self._come.get():
            with suppress(OSError):
                if not target.is_closing():
                    target.write(data)
                    await target.drain()
            self._receipts.add(len(data))
