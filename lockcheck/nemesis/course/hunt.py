"""Waits for a client to reach the point where a fault strikes, and keeps it there.

All clients are asked in advance to stay at that point once they reach it: see `client/aims.py`. The
first one is caught, and the others go on.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from lockcheck.client.aims import POLL_S, Point, mark
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.triggers import Trigger

# A client that still holds the lock so long after it was marked has seen the mark in time.
OBEYS_S = 0.02


class Hunt(ABC):
    point = Point.LEASE

    def __init__(
        self,
        holders: Holders,
        prey: Iterable[str],
        is_free: Callable[[str], bool],
        grants: asyncio.Queue[str],
    ) -> None:
        self._holders = holders
        self._prey = list(prey)
        self._is_free = is_free
        self._grants = grants
        self._number = next(holders.numbers)
        self._mark = mark(self.point, self._number)
        self._marked_s: dict[str, float] = {}  # when each client was marked

    async def catch(self, skip: int = 0) -> str:
        """Waits for the next client at the point, after `skip` undisturbed grants of the lock."""
        for _ in range(skip):
            await self._grants.get()
        self._prepare()
        while True:
            self._mark_the_free()
            node = await self._at_point()
            if node is not None and self._is_free(node):
                return node

    def _prepare(self) -> None:  # noqa: B027 - most need no preparation
        """Called right before clients are marked for the first time."""

    @abstractmethod
    async def _at_point(self) -> str | None:
        """A client that is at the point now; None, after a short wait, if there is none."""

    def keep(self, node: str, *, at_work: bool) -> Callable[[], None]:
        """Keeps a client at the point beyond the hunt, until the returned function is called. With
        `at_work`, a client at work stays there even past its lease."""
        if self._marked_s.pop(node, None) is None:
            return lambda: None
        kept = self._mark
        if at_work and self.point is Point.LEASE:
            kept = mark(Point.WORK, self._number)
            self._holders.mark(node, kept)
            self._holders.unmark(node, self._mark)
        return lambda: self._holders.unmark(node, kept)

    def let_go(self) -> None:
        """Lets all clients go on but the one that is kept."""
        for node in list(self._marked_s):
            self._unmark(node)

    def _mark_the_free(self) -> None:
        """Marks the clients that no fault has struck, and unmarks those that one has."""
        for node in self._prey:
            if self._is_free(node) and node not in self._marked_s:
                self._holders.mark(node, self._mark)
                self._marked_s[node] = _now()
            elif not self._is_free(node) and node in self._marked_s:
                self._unmark(node)

    def _unmark(self, node: str) -> None:
        self._holders.unmark(node, self._mark)
        del self._marked_s[node]


class _OnAcquire(Hunt):
    def _prepare(self) -> None:
        self._held_before = set(self._holders.now())

    async def _at_point(self) -> str | None:
        return await self._granted() or self._still_held()

    async def _granted(self) -> str | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(OBEYS_S):
                node = await self._grants.get()
                self._held_before.discard(node)
                return node
        return None

    def _still_held(self) -> str | None:
        """A client that held the lock before it was marked: no other grant may be coming."""
        self._held_before &= self._holders.now().keys()
        latest_s = _now() - OBEYS_S
        obeying = [n for n in self._held_before if self._marked_s.get(n, latest_s + 1) <= latest_s]
        return min(obeying, default=None)


class _Standing(Hunt):
    async def _at_point(self) -> str | None:
        for node in self._marked_s:
            if self._holders.stands(node, self._mark):
                return node
        await asyncio.sleep(POLL_S)
        return None


class _OnWrite(_Standing):
    point = Point.WRITE


class _BeforeRelease(_Standing):
    point = Point.RELEASE


class _NearExpiry(Hunt):
    async def _at_point(self) -> str | None:
        for node in self._holders.near_expiry():
            if node in self._marked_s:
                return node
        await asyncio.sleep(POLL_S)
        return None


_HUNTS: dict[Trigger, type[Hunt]] = {
    Trigger.ACQUIRE: _OnAcquire,
    Trigger.WRITE: _OnWrite,
    Trigger.RELEASE: _BeforeRelease,
    Trigger.EXPIRY: _NearExpiry,
}


@contextmanager
def hunting(
    holders: Holders, trigger: Trigger, prey: Iterable[str], is_free: Callable[[str], bool]
) -> Iterator[Hunt]:
    """A hunt among the clients `prey`; afterwards all go on but the one that is kept."""
    with holders.grants() as grants:
        hunt = _HUNTS[trigger](holders, prey, is_free, grants)
        try:
            yield hunt
        finally:
            hunt.let_go()


def _now() -> float:
    return asyncio.get_running_loop().time()
