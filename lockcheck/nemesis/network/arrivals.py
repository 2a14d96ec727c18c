"""Sends packets over links and counts those that arrive: so cuts, and their end, are proven.

Each node's network gets a socket of ours, whether the node's own processes run or not. A packet is
sent in one network and received in the other, so each direction is tested by itself.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from os import urandom

from lockcheck.nemesis.network.links import Link
from lockcheck.nodes.node import Node

TRY_S = 0.01
SOON_S = 0.001
SECRET_BYTES, NUMBER_BYTES = 16, 4
LONGEST = 64  # how many bytes of a packet are read
OVERHEAD_BYTES = 42  # of the headers: Ethernet, IP, UDP


class Arrivals:
    def __init__(self, nodes: Iterable[Node]) -> None:
        """Networks that cannot be entered are left out: see `covers`."""
        self._nodes: dict[str, Node] = {}
        self._sockets: dict[str, socket.socket] = {}
        self._next = 0
        self._secret = urandom(SECRET_BYTES)  # marks our packets
        for node in nodes:
            with suppress(OSError), node.inside_network():
                self._sockets[node.name] = _listen(node.address)
                self._nodes[node.name] = node
        self._names = {its.getsockname(): name for name, its in self._sockets.items()}

    def covers(self, link: Link) -> bool:
        return link.sender in self._sockets and link.receiver in self._sockets

    async def watch(self, links: Iterable[Link], tries: int) -> dict[Link, list[int]]:
        """Sends `tries` packets over each link; returns which of them arrived, counted from 0."""
        links = list(links)
        arrived: dict[Link, list[int]] = {link: [] for link in links}
        began = self._next
        for _ in range(tries):
            self._send(links)
            await asyncio.sleep(TRY_S)
            for link, number in self._received(since=began):
                arrived.get(link, []).append(number - began)
        return arrived

    async def burst(
        self, link: Link, packets: int, size: int, timeout_s: float, *, at_once: int
    ) -> list[float]:
        """Sends packets of `size` bytes; returns after how many seconds each arrived in time."""
        loop = asyncio.get_running_loop()
        took, sent, sent_s, began = list[float](), 0, loop.time(), self._next
        deadline = sent_s + timeout_s
        while len(took) < packets and loop.time() <= deadline:
            for _ in range(min(at_once, packets - sent)):
                self._send([link], size - OVERHEAD_BYTES)
                sent, deadline = sent + 1, loop.time() + timeout_s
            await asyncio.sleep(SOON_S)
            came = sum(each == link for each, _ in self._received(since=began))
            took += [loop.time() - sent_s] * came
        return took

    async def all_arrive(
        self, links: Iterable[Link], timeout_s: float, *, at_once: int = 1
    ) -> set[Link]:
        """Sends until a packet has arrived over each link; returns the links where none did."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        missing, began = set(links), self._next
        while missing and loop.time() <= deadline:
            for _ in range(at_once):
                self._send(missing)
            await asyncio.sleep(SOON_S if self._next < began + 10 else TRY_S)
            missing -= {link for link, _ in self._received(since=began)}
        return missing

    def close(self) -> None:
        for its in self._sockets.values():
            its.close()

    def _send(self, links: Iterable[Link], size: int = 0) -> None:
        packet = (self._secret + self._next.to_bytes(NUMBER_BYTES, "big")).ljust(size, b"\0")
        self._next += 1
        for link in links:
            with suppress(OSError):  # counts as a packet that does not arrive
                to = self._sockets[link.receiver].getsockname()
                self._sockets[link.sender].sendto(packet, to)

    def _received(self, *, since: int) -> Iterator[tuple[Link, int]]:
        """The links and numbers of packets that have arrived, without those from before `since`."""
        for receiver, its in self._sockets.items():
            with suppress(BlockingIOError):
                while True:
                    packet, sent_from = its.recvfrom(LONGEST)
                    number = int.from_bytes(
                        packet[SECRET_BYTES : SECRET_BYTES + NUMBER_BYTES], "big"
                    )
                    sender = self._names.get(sent_from)
                    if sender and packet.startswith(self._secret) and number >= since:
                        yield Link(sender, receiver), number


def _listen(address: str) -> socket.socket:
    its = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    its.setblocking(False)
    its.bind((address, 0))
    return its
