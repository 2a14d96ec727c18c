"""Three ways to slow down a node: a low rate, losses, a delay. Each is measured by packets of ours,
sent the same way before, during and after."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from lockcheck.nemesis.network import drops, queues
from lockcheck.nemesis.network.arrivals import Arrivals
from lockcheck.nemesis.network.links import Link
from lockcheck.nodes.node import Node

CLEARLY = 0.75  # the least part of the intended effect that counts as being in effect,
HARDLY = 0.5  # and the largest part that counts as being gone
# The packets that measure a rate: how long they take, and how many bytes they are at most.
MEASURED_S, MEASURED_BYTES = 0.25, 40_000
SMALL, LARGE = 100, 1400
SPARE_S = 0.2


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a measurement."""

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
    def apply(self, node: Node, others: Iterable[Node]) -> None: ...

    @abstractmethod
    def remove(self, node: Node, others: Iterable[Node]) -> None:
        """Harmless if it is not applied."""

    @abstractmethod
    async def measure(self, arrivals: Arrivals, link: Link) -> Seen: ...

    @abstractmethod
    def is_in_effect(self, seen: Seen) -> bool:
        """False, too, if nothing arrived: then the link may be cut."""

    @abstractmethod
    def is_gone(self, seen: Seen) -> bool: ...

    @abstractmethod
    def words(self, seen: Seen) -> str: ...


class Queued(Slowness):
    """Packets wait in a queue of the node that sends them."""

    queue: queues.Queue

    def apply(self, node: Node, others: Iterable[Node]) -> None:  # noqa: ARG002
        queues.add(node, self.queue)

    def remove(self, node: Node, others: Iterable[Node]) -> None:  # noqa: ARG002
        queues.remove(node)

    def words(self, seen: Seen) -> str:
        return f"{len(seen.took_s)} of {seen.packets} packets within {seen.last_ms}"


class Rate(Queued):
    def __init__(self, bytes_per_s: int) -> None:
        self.bytes_per_s = bytes_per_s
        self.queue = queues.limiting(bytes_per_s)

    @property
    def _after_burst(self) -> int:
        return min(int(self.bytes_per_s * MEASURED_S), MEASURED_BYTES)

    @property
    def _takes_s(self) -> float:
        return self._after_burst / self.bytes_per_s

    async def measure(self, arrivals: Arrivals, link: Link) -> Seen:
        """Sends a little more than what passes at once, so that some packets have to wait."""
        weight = queues.burst_of(self.bytes_per_s) + self._after_burst
        size = SMALL if weight < SMALL * LARGE / 10 else LARGE
        packets = -(-weight // size)
        waiting_s = queues.limit_of(self.bytes_per_s) / self.bytes_per_s
        timeout_s = self._takes_s + waiting_s + SPARE_S  # behind what others send
        took = await arrivals.burst(link, packets, size, timeout_s, at_once=packets)
        # Even a queue that is full of other packets lets one in now and then, to wait as long
        if not took and not await arrivals.all_arrive([link], 2 * timeout_s, at_once=packets):
            took = [timeout_s]
        return Seen(packets, tuple(took))

    def is_in_effect(self, seen: Seen) -> bool:
        """Also if some are lost, because the queue is full of other packets."""
        slow = bool(seen.lost) or max(seen.took_s, default=0.0) >= CLEARLY * self._takes_s
        return bool(seen.took_s) and slow

    def is_gone(self, seen: Seen) -> bool:
        return not seen.lost and max(seen.took_s) <= HARDLY * self._takes_s


@dataclass(frozen=True, slots=True)
class PacketLoss(Slowness):
    percent: float

    def apply(self, node: Node, others: Iterable[Node]) -> None:
        for other in others:
            drops.lose(other, node.address, self.percent, _table(node))

    def remove(self, node: Node, others: Iterable[Node]) -> None:
        for other in others:
            drops.stop_losing(other, _table(node))

    async def measure(self, arrivals: Arrivals, link: Link) -> Seen:
        """Sends so many packets that about thirty are lost, or about thirty arrive."""
        few = min(self.percent, 100 - self.percent) / 100
        packets = max(60, round(30 / few))
        took = await arrivals.burst(link, packets, SMALL, SPARE_S, at_once=10)
        return Seen(packets, tuple(took))

    def is_in_effect(self, seen: Seen) -> bool:
        share = self.percent / 100
        return HARDLY * share < seen.lost < 1 - HARDLY * (1 - share)

    def is_gone(self, seen: Seen) -> bool:
        return seen.lost <= HARDLY / 2 * self.percent / 100

    def words(self, seen: Seen) -> str:
        return f"{seen.packets - len(seen.took_s)} of {seen.packets} packets lost"


class Delay(Queued):
    def __init__(self, ms: int) -> None:
        self.ms = ms
        self.queue = queues.delaying(ms)

    async def measure(self, arrivals: Arrivals, link: Link) -> Seen:
        packets = 5
        timeout_s = self.ms / 1000 * 2 + SPARE_S
        took = await arrivals.burst(link, packets, SMALL, timeout_s, at_once=packets)
        return Seen(packets, tuple(took))

    def is_in_effect(self, seen: Seen) -> bool:
        return bool(seen.took_s) and min(seen.took_s) * 1000 >= CLEARLY * self.ms

    def is_gone(self, seen: Seen) -> bool:
        return bool(seen.took_s) and min(seen.took_s) * 1000 <= HARDLY * self.ms


def _table(sender: Node) -> str:
    """The name of the table of rules: one is enough, since two faults never slow down one node."""
    return f"lockcheck-{sender.name}"
