"""Moving the clocks of a node: the interface, and the engine that needs no preparation (vDSO)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Protocol, TypeVar

from lockcheck.errors import FaultError
from lockcheck.nemesis.clock.skew import CLOCKS, Skew, true_ns
from lockcheck.nemesis.clock.vdso import Vdso
from lockcheck.nemesis.faults.pause import Pause
from lockcheck.nodes.node import Node
from lockcheck.servers.base import Clock

Answer = TypeVar("Answer")

TRIES = 50
BETWEEN_TRIES_S = 0.002
# A clock is read between two readings of the true one. If these are further apart than this, the
# machine stalled in between, and the clock is read again.
AT_MOST_APART_NS = 100_000


class Clocks(Protocol):
    """The clocks of one node, in all of its processes."""

    engine: str  # its name in proofs
    readable: tuple[Clock, ...]  # the clocks whose offsets can be read,
    tolerance_ns: int  # to within this

    async def take(self, skew: Skew, now_ns: Callable[[], int]) -> int:
        """Takes control of the clocks and sets them; changes nothing if it fails. Returns the
        moment, by `now_ns`, right before the change."""

    def apply(self, skew: Skew) -> None:
        """Sets how the clocks run from now on."""

    async def offsets_ns(self, clock: Clock) -> list[int]:
        """How far the clock is off, in each process where it can be read."""

    def are_set_to(self, skew: Skew) -> bool:
        """Whether the clocks still run like that, unchanged from outside."""

    async def give_back(self) -> None:
        """Restores the kernel's clocks, and checks that. Harmless when repeated."""


class VdsoClocks:
    engine = "vDSO"
    readable: tuple[Clock, ...] = CLOCKS
    tolerance_ns = 5_000_000

    def __init__(self, node: Node) -> None:
        self._node = node
        self._opened: dict[int, Vdso] = {}

    async def take(self, skew: Skew, now_ns: Callable[[], int]) -> int:
        self._of_each(Vdso.check_writable)
        async with self._stopped_for_writing() as stopped:
            before_ns = now_ns()
            for vdso in stopped:
                vdso.redirect()
                vdso.apply(skew)
        return before_ns

    def apply(self, skew: Skew) -> None:
        """Repeated until all agree: a process forked meanwhile may have inherited the old skew."""
        for _ in range(TRIES):
            pids = self._node.pids()
            self._of_each(lambda vdso: vdso.apply(skew))
            if self.are_set_to(skew) and set(self._node.pids()) <= set(pids):
                return
        raise FaultError(f"the processes of {self._node.name} cannot be made to agree on the time")

    def are_set_to(self, skew: Skew) -> bool:
        return all(self._of_each(lambda vdso: vdso.is_redirected and vdso.skew() == skew))

    async def offsets_ns(self, clock: Clock) -> list[int]:
        return self._of_each(lambda vdso: offset_ns(clock, read_by(vdso, clock)))

    async def give_back(self) -> None:
        async with self._stopped_for_writing() as stopped:
            for vdso in stopped:
                vdso.restore()
        moved = self._of_each(lambda vdso: (vdso.pid, vdso.is_redirected))
        if left := [pid for pid, is_redirected in moved if is_redirected]:
            raise FaultError(f"the clocks of processes {left} of {self._node.name} are still moved")
        self.close()

    def close(self) -> None:
        """Closes the handles of the processes' memory; moved clocks stay moved."""
        self._close(set(self._opened))

    @asynccontextmanager
    async def _stopped_for_writing(self) -> AsyncIterator[list[Vdso]]:
        """All processes, stopped, with no thread inside the code that will be overwritten."""
        for _ in range(TRIES if self._node.alive else 0):
            pause = Pause([self._node])
            try:
                await pause.inject()
                found = self._all()
                if not any(vdso.has_thread_in_jumps() for vdso in found):
                    yield found
                    return
            finally:
                await pause.heal()
            await asyncio.sleep(BETWEEN_TRIES_S)
        if self._node.alive:
            raise FaultError(
                f"a thread of {self._node.name} was always inside the code that has to be changed"
            )
        yield []

    def _of_each(self, ask: Callable[[Vdso], Answer]) -> list[Answer]:
        """The answers of all processes. One that ends meanwhile gives none: PostgreSQL's come and
        go with the connections."""
        answers = []
        for vdso in self._all():
            with suppress(ProcessLookupError):
                answers.append(ask(vdso))
        return answers

    def _all(self) -> list[Vdso]:
        return list(self._each(self._node.pids()))

    def _each(self, pids: list[int]) -> Iterator[Vdso]:
        self._close(self._opened.keys() - set(pids))
        for pid in pids:
            with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                if pid not in self._opened:
                    self._opened[pid] = Vdso(pid)
                yield self._opened[pid]

    def _close(self, pids: set[int]) -> None:
        for pid in pids:
            self._opened.pop(pid).close()


def read_by(vdso: Vdso, clock: Clock) -> Callable[[], int]:
    """Reads the clock as the process does: the true one if its vDSO is not redirected."""
    return (lambda: vdso.read_ns(clock)) if vdso.is_redirected else (lambda: true_ns(clock))


def offset_ns(clock: Clock, read: Callable[[], int]) -> int:
    """How far a reading is from the true clock at the same moment."""
    for _ in range(TRIES):
        before_ns = true_ns(clock)
        shown_ns = read()
        after_ns = true_ns(clock)
        if after_ns - before_ns <= AT_MOST_APART_NS:
            return shown_ns - (before_ns + after_ns) // 2
    raise FaultError("the machine stalls: no two clocks can be read at the same moment")
