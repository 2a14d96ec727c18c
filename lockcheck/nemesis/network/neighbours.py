"""The kernel's table of neighbours: which hardware address a packet to an address is sent to."""

from __future__ import annotations

import socket
import struct

from lockcheck.nodes.netlink import CREATE, REPLACE, Kernel, attribute, device_with

NOBODY = bytes.fromhex("020000000000")  # locally administered, and given to no node

NEW, DELETE = 28, 29  # RTM_NEWNEIGH, RTM_DELNEIGH
PERMANENT = 0x80  # NUD_PERMANENT: the kernel never asks who it is
DESTINATION, HARDWARE = 1, 2  # NDA_DST, NDA_LLADDR
NEIGHBOUR = struct.Struct("=BxxxiHBB")  # family, device, state, flags, type


class Neighbours:
    """Of the network that it is created in; its cable there is the one with `own_address`."""

    def __init__(self, own_address: str) -> None:
        self._device = device_with(own_address)
        self._kernel = Kernel()

    def __enter__(self) -> Neighbours:
        return self

    def __exit__(self, *_: object) -> None:
        self._kernel.close()

    def send_astray(self, address: str) -> None:
        """From now on, packets to it reach nobody."""
        attributes = attribute(DESTINATION, socket.inet_aton(address))
        attributes += attribute(HARDWARE, NOBODY)
        self._ask(NEW, REPLACE | CREATE, PERMANENT, attributes)

    def forget(self, address: str) -> None:
        """With the next packet the kernel asks who it is, and is told at once."""
        self._ask(DELETE, 0, 0, attribute(DESTINATION, socket.inet_aton(address)))

    def _ask(self, what: int, flags: int, state: int, attributes: bytes) -> None:
        body = NEIGHBOUR.pack(socket.AF_INET, self._device, state, 0, 0) + attributes
        self._kernel.ask(what, flags, body)
