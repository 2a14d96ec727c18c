"""How the clocks of a node are moved: an interface, and the engine that needs nothing prepared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from lockcheck.errors import FaultError
from lockcheck.nemesis.clock.skew import CLOCKS, Skew, true_ns
from lockcheck.nemesis.clock.vdso import Vdso
from lockcheck.nemesis.faults.pause import Pause
from lockcheck.nodes.node import Node
from lockcheck.servers.base import Clock

TRIES = 50
BETWEEN_TRIES_S = 0.002
# A clock is read between two readings of the true one. If these are further apart than this, the
# machine stalled in between, and it is read again.
AT_MOST_APART_NS = 100_000


class Clocks(Protocol):
    """The clocks of one node, in all of its processes."""

    engine: str  # its name, for people
    readable: tuple[Clock, ...]  # those whose offsets can be read
    tolerance_ns: int  # how finely

    async def take(self, skew: Skew, now_ns: Callable[[], int]) -> int:
        """From now on we control them, and they run like that. Touches nothing if it fails. Returns
        the moment, by `now_ns`, right before the change."""

    def tell(self, skew: Skew) -> None:
        """From now on they run like that."""

    async def offsets_ns(self, clock: Clock) -> list[int]:
        """How far it is off, as read in each process where that is possible."""

    def still_tell(self, skew: Skew) -> bool:
        """Whether nobody else has changed them."""

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
        for vdso in self._all():
            vdso.can_be_written()
        async with self._stopped_in_good_places() as all_of_them:
            before_ns = now_ns()
            for vdso in all_of_them:
                vdso.lead()
                vdso.tell(skew)
        return before_ns

    def tell(self, skew: Skew) -> None:
        """Until all agree: a process forked meanwhile may have inherited the old setting."""
        for _ in range(TRIES):
            pids = self._node.pids()
            for vdso in self._each(pids):
                vdso.tell(skew)
            if self.still_tell(skew) and set(self._node.pids()) <= set(pids):
                return
        raise FaultError(f"the processes of {self._node.name} cannot be made to agree on the time")

    def still_tell(self, skew: Skew) -> bool:
        return all(vdso.is_led and vdso.told() == skew for vdso in self._all())

    async def offsets_ns(self, clock: Clock) -> list[int]:
        return [offset_ns(clock, read_by(vdso, clock)) for vdso in self._all()]

    async def give_back(self) -> None:
        async with self._stopped_in_good_places() as all_of_them:
            for vdso in all_of_them:
                vdso.restore()
        if left := [vdso.pid for vdso in self._all() if vdso.is_led]:
            raise FaultError(f"processes {left} of {self._node.name} still have a clock of ours")
        self.close()

    def close(self) -> None:
        """Undoes nothing."""
        self._close(set(self._opened))

    @asynccontextmanager
    async def _stopped_in_good_places(self) -> AsyncIterator[list[Vdso]]:
        """All threads are stopped, and none of them where something will be written."""
        for _ in range(TRIES if self._node.alive else 0):
            pause = Pause([self._node])
            try:
                await pause.inject()
                found = self._all()
                if not any(vdso.is_in_the_way() for vdso in found):
                    yield found
                    return
            finally:
                await pause.heal()
            await asyncio.sleep(BETWEEN_TRIES_S)
        if self._node.alive:
            raise FaultError(
                f"a thread of {self._node.name} was always within the code that has to be changed"
            )
        yield []

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
    """A process with an unchanged vDSO reads the same clock as we do."""
    return (lambda: vdso.read_ns(clock)) if vdso.is_led else (lambda: true_ns(clock))


def offset_ns(clock: Clock, read: Callable[[], int]) -> int:
    """How far its reading is from the true clock at that moment."""
    for _ in range(TRIES):
        before_ns = true_ns(clock)
        told_ns = read()
        after_ns = true_ns(clock)
        if after_ns - before_ns <= AT_MOST_APART_NS:
            return told_ns - (before_ns + after_ns) // 2
    raise FaultError("the machine stalls: no two clocks can be read at the same moment")
