"""The kernel's neighbour table: the hardware address to which packets for an address are sent."""

from __future__ import annotations

import socket
import struct

from lockcheck.nodes.netlink import CREATE, REPLACE, Kernel, attribute, device_with

UNUSED = bytes.fromhex("020000000000")  # a locally administered address that no node has

NEW, DELETE = 28, 29  # RTM_NEWNEIGH, RTM_DELNEIGH
PERMANENT = 0x80  # NUD_PERMANENT: never looked up again
DESTINATION, HARDWARE = 1, 2  # NDA_DST, NDA_LLADDR
NEIGHBOUR = struct.Struct("=BxxxiHBB")  # family, device, state, flags, type


class Neighbours:
    """The table of the current network, for the interface with `own_address`."""

    def __init__(self, own_address: str) -> None:
        self._device = device_with(own_address)
        self._kernel = Kernel()

    def __enter__(self) -> Neighbours:
        return self

    def __exit__(self, *_: object) -> None:
        self._kernel.close()

    def misdirect(self, address: str) -> None:
        """From now on, packets to that address are lost."""
        attributes = attribute(DESTINATION, socket.inet_aton(address))
        attributes += attribute(HARDWARE, UNUSED)
        self._ask(NEW, REPLACE | CREATE, PERMANENT, attributes)

    def forget(self, address: str) -> None:
        """Removes the entry: with the next packet the kernel looks the address up again."""
        self._ask(DELETE, 0, 0, attribute(DESTINATION, socket.inet_aton(address)))

    def _ask(self, what: int, flags: int, state: int, attributes: bytes) -> None:
        body = NEIGHBOUR.pack(socket.AF_INET, self._device, state, 0, 0) + attributes
        self._kernel.ask(what, flags, body)
