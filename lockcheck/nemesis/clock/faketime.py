"""Moves the clocks of a JVM by libfaketime, which is preloaded when the server starts.

It moves both clocks together, by the offset in a file, and also translates the absolute times until
which a JVM waits. The effect is read from the server's uptime, by its monotonic clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from lockcheck.errors import FaultError
from lockcheck.nemesis.clock.skew import NS_PER_S, Skew, true_ns
from lockcheck.nodes.node import Node
from lockcheck.servers.asking.answer import answer
from lockcheck.servers.base import Clock, TellsTime
from lockcheck.servers.faketime import FILE_VARIABLE, LIBRARY, file_text

TRIES = 20
BETWEEN_TRIES_S = 0.05
TICKS_PER_S = 100  # USER_HZ, the unit of times in /proc


class FaketimeClocks:
    engine = "libfaketime"
    readable: tuple[Clock, ...] = (Clock.MONOTONIC,)
    tolerance_ns = 300_000_000  # the server's answer takes a while

    def __init__(self, node: Node) -> None:
        self._node = node
        self._file = Path()
        self._up_since_ns = 0  # its start by the true clock, read before its own was moved
        self._text = ""  # last written to the file

    async def take(self, skew: Skew, now_ns: Callable[[], int]) -> int:
        self._file = _file_of(self._node)
        self._up_since_ns = true_ns(Clock.MONOTONIC) - await self._up_ns()
        before_ns = now_ns()
        self.apply(skew)
        return before_ns

    def apply(self, skew: Skew) -> None:
        self._text = file_text(skew.monotonic.shown_from)
        self._write(self._text)

    def are_set_to(self, skew: Skew) -> bool:
        wanted = file_text(skew.monotonic.shown_from)
        return self._inside(self._file).read_text() == wanted == self._text

    async def offsets_ns(self, clock: Clock) -> list[int]:
        """Empty for the wall clock, which cannot be read."""
        if clock is not Clock.MONOTONIC:
            return []
        before_ns = true_ns(clock)
        up_ns = await self._up_ns()
        real_ns = (before_ns + true_ns(clock)) // 2
        return [up_ns - (real_ns - self._up_since_ns)]

    async def give_back(self) -> None:
        """Also checks that the reported uptime is not longer than the process has run. It may be
        much shorter: it counts from when the server last became a leader or a follower."""
        if self._text:
            self._write(file_text(0))
        if self._text and self._node.alive:
            ahead_ns = await self._up_ns() - _age_ns(self._node.pids()[0])
            if ahead_ns > NS_PER_S:
                raise FaultError(
                    f"{self._node.name}'s clock is still {ahead_ns / NS_PER_S:+.1f} s off"
                )

    async def _up_ns(self) -> int:
        server = self._node.spec.server
        telling = server.tells_time if server else None
        if server is None or telling is None or telling.clock is not Clock.MONOTONIC:
            raise FaultError(f"{self._node.name} does not report its uptime")
        return await self._ask_ns(server.port, telling)

    async def _ask_ns(self, port: int, telling: TellsTime) -> int:
        for _ in range(TRIES):
            reply = await answer(self._node, (self._node.address, port), telling.question)
            if reply is not None:
                return telling.read_ns(reply)
            await asyncio.sleep(BETWEEN_TRIES_S)
        raise FaultError(f"{self._node.name} does not report {telling.called}")

    def _write(self, text: str) -> None:
        """Atomically: under another name, then renamed."""
        file = self._inside(self._file)
        unfinished = file.with_name(f"{file.name}.part")
        unfinished.write_text(text)
        unfinished.rename(file)

    def _inside(self, file: Path) -> Path:
        """The path of the node's file as the agent sees it, whether the node runs or not."""
        first = next(iter(self._node.keepers), None)
        return Path(f"/proc/{first}/root") / file.relative_to("/") if first else file


def _file_of(node: Node) -> Path:
    """The offset file, by the environment of the program, which must have loaded the library."""
    for pid in node.pids():
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        named = [word for word in words if word.startswith(f"{FILE_VARIABLE}=".encode())]
        if named and LIBRARY in Path(f"/proc/{pid}/maps").read_text():
            return Path(named[0].partition(b"=")[2].decode())
    raise FaultError(
        f"{node.name} does not run under libfaketime", cure="its output says why it was not loaded"
    )


def _age_ns(pid: int) -> int:
    """How long the process has existed."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    started_ns = int(stat[19]) * NS_PER_S // TICKS_PER_S
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - started_ns
