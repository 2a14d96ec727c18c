"""Three ways to be slow: a low rate, losses, a delay. Each can be put on and taken off, and is
measured by packets of ours, sent the same way before, during and after.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from lockcheck.nemesis.network import drops, queues
from lockcheck.nemesis.network.arrivals import Arrivals
from lockcheck.nemesis.network.links import Link
from lockcheck.nodes.node import Node

CLEARLY = 0.75  # of the intended effect: nearer to that than to none
HARDLY = 0.5
# Of the packets that measure a rate: how long they take, and how many bytes they are at most.
MEASURED_S, MEASURED_BYTES = 0.25, 40_000
SMALL, LARGE = 100, 1400
SPARE_S = 0.2


@dataclass(frozen=True, slots=True)
class Seen:
    """What happened to a few packets."""

    packets: int
    took_s: tuple[float, ...]  # of those that arrived

    @property
    def lost(self) -> float:
        return 1 - len(self.took_s) / self.packets

    @property
    def last_ms(self) -> str:
        ms = max(self.took_s, default=0.0) * 1000
        return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


class Slowness(ABC):
    @abstractmethod
    def put_on(self, node: Node, others: Iterable[Node]) -> None: ...

    @abstractmethod
    def take_off(self, node: Node, others: Iterable[Node]) -> None:
        """Harmless if it is not there."""

    @abstractmethod
    async def look(self, arrivals: Arrivals, link: Link) -> Seen: ...

    @abstractmethod
    def is_there(self, seen: Seen) -> bool:
        """Also: something arrived, so it is not cut."""

    @abstractmethod
    def is_gone(self, seen: Seen) -> bool: ...

    @abstractmethod
    def words(self, seen: Seen) -> str: ...


@dataclass(frozen=True, slots=True)
class Rate(Slowness):
    bytes_per_s: int

    def put_on(self, node: Node, others: Iterable[Node]) -> None:  # noqa: ARG002
        queues.limit_rate(node, self.bytes_per_s)

    def take_off(self, node: Node, others: Iterable[Node]) -> None:  # noqa: ARG002
        queues.take_away(node)

    @property
    def _after_burst(self) -> int:
        return min(int(self.bytes_per_s * MEASURED_S), MEASURED_BYTES)

    @property
    def _takes_s(self) -> float:
        return self._after_burst / self.bytes_per_s

    async def look(self, arrivals: Arrivals, link: Link) -> Seen:
        """A little more than what passes at once, so that some of it has to wait."""
        weight = queues.burst_of(self.bytes_per_s) + self._after_burst
        size = SMALL if weight < SMALL * LARGE / 10 else LARGE
        packets = -(-weight // size)
        waiting_s = queues.waiting_of(self.bytes_per_s) / self.bytes_per_s
        timeout_s = self._takes_s + waiting_s + SPARE_S  # behind what others send
        took = await arrivals.burst(link, packets, size, timeout_s, at_once=packets)
        # A queue that is full of other packets has room now and then.
        if not took and not await arrivals.all_arrive([link], timeout_s, at_once=packets):
            took = [timeout_s]
        return Seen(packets, tuple(took))

    def is_there(self, seen: Seen) -> bool:
        """Some are lost if the queue is full of others."""
        slow = bool(seen.lost) or max(seen.took_s, default=0.0) >= CLEARLY * self._takes_s
        return bool(seen.took_s) and slow

    def is_gone(self, seen: Seen) -> bool:
        return not seen.lost and max(seen.took_s) <= HARDLY * self._takes_s

    def words(self, seen: Seen) -> str:
        return f"{len(seen.took_s)} of {seen.packets} packets within {seen.last_ms}"


@dataclass(frozen=True, slots=True)
class PacketLoss(Slowness):
    percent: float

    def put_on(self, node: Node, others: Iterable[Node]) -> None:
        for other in others:
            drops.lose(other, node.address, self.percent, _table(node))

    def take_off(self, node: Node, others: Iterable[Node]) -> None:
        for other in others:
            drops.lose_no_more(other, _table(node))

    async def look(self, arrivals: Arrivals, link: Link) -> Seen:
        """Enough of them that about thirty are lost, or about thirty arrive."""
        few = min(self.percent, 100 - self.percent) / 100
        packets = max(60, round(30 / few))
        took = await arrivals.burst(link, packets, SMALL, SPARE_S, at_once=10)
        return Seen(packets, tuple(took))

    def is_there(self, seen: Seen) -> bool:
        share = self.percent / 100
        return HARDLY * share < seen.lost < 1 - HARDLY * (1 - share)

    def is_gone(self, seen: Seen) -> bool:
        return seen.lost <= HARDLY / 2 * self.percent / 100

    def words(self, seen: Seen) -> str:
        return f"{seen.packets - len(seen.took_s)} of {seen.packets} packets lost"


@dataclass(frozen=True, slots=True)
class Delay(Slowness):
    ms: int

    def put_on(self, node: Node, others: Iterable[Node]) -> None:  # noqa: ARG002
        queues.delay(node, self.ms)

    def take_off(self, node: Node, others: Iterable[Node]) -> None:  # noqa: ARG002
        queues.take_away(node)

    async def look(self, arrivals: Arrivals, link: Link) -> Seen:
        packets = 5
        timeout_s = self.ms / 1000 * 2 + SPARE_S
        took = await arrivals.burst(link, packets, SMALL, timeout_s, at_once=packets)
        return Seen(packets, tuple(took))

    def is_there(self, seen: Seen) -> bool:
        return bool(seen.took_s) and min(seen.took_s) * 1000 >= CLEARLY * self.ms

    def is_gone(self, seen: Seen) -> bool:
        return bool(seen.took_s) and min(seen.took_s) * 1000 <= HARDLY * self.ms

    def words(self, seen: Seen) -> str:
        return f"{len(seen.took_s)} of {seen.packets} packets within {seen.last_ms}"


def _table(sender: Node) -> str:
    """One name is enough: no node is slowed down by two faults at once."""
    return f"lockcheck-{sender.name}"
