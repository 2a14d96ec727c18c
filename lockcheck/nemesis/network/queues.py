"""How packets leave a node by its cable: at a limited rate (tbf), or after a delay (netem).

The queue is the kernel's, on the cable in the node's own network, and is made by a message to it:
no program is needed. Packets that wait in it are lost when it is removed.
"""

from __future__ import annotations

import struct
from errno import EINVAL, ENOENT
from socket import AF_UNSPEC

from lockcheck.nodes.netlink import CREATE, EXCLUSIVE, Kernel, attribute, device_with, text
from lockcheck.nodes.node import Node

NEW, DELETE = 36, 37  # RTM_NEWQDISC, RTM_DELQDISC
ROOT, HANDLE = 0xFFFFFFFF, 0x10000  # of the device; "1:"
KIND, OPTIONS = 1, 2  # TCA_KIND, TCA_OPTIONS
QUEUE = struct.Struct("=BxxxiIII")  # family, device, handle, parent, info

TBF, NETEM = "tbf", "netem"
PARAMETERS, BURST = 1, 6  # TCA_TBF_PARMS, TCA_TBF_BURST
RATE = struct.Struct("=BBHhHI")  # cells, link layer, overhead, alignment, least, bytes a second
ETHERNET = 1  # so that the kernel computes times itself, and needs no table of them
SIZES = struct.Struct("=III")  # what may wait, in bytes; two that other fields replace
FULL_PACKET = 1514
NETEM_OPTIONS = struct.Struct("=IIIIII")  # delay in ticks, packets that may wait, and four others
TICK_NS = 64
MANY = 10_000


def burst_of(rate: int) -> int:
    """How much may pass at once, in bytes: a full packet, which must pass, or what a clock that
    ticks a hundred times a second makes of it."""
    return max(FULL_PACKET, rate // 100)


def waiting_of(rate: int) -> int:
    """How much may wait, in bytes: half a second's, or a full packet."""
    return max(FULL_PACKET, rate // 2)


def limit_rate(node: Node, rate: int) -> None:
    """To this many bytes a second."""
    _add(node, TBF, _at_rate(rate))


def delay(node: Node, delay_ms: int) -> None:
    _add(node, NETEM, _later(delay_ms))


def take_away(node: Node) -> None:
    """Harmless if there is none."""
    with node.inside_network(), Kernel() as kernel:
        try:
            kernel.ask(DELETE, 0, QUEUE.pack(AF_UNSPEC, device_with(node.address), HANDLE, ROOT, 0))
        except OSError as error:  # what the kernel says where nothing was put there
            if error.errno not in (ENOENT, EINVAL):
                raise


def try_rate_here(device: int) -> None:
    """Raises OSError where the kernel cannot."""
    _add_here(device, TBF, _at_rate(FULL_PACKET))


def try_delay_here(device: int) -> None:
    _add_here(device, NETEM, _later(1))


def _at_rate(rate: int) -> bytes:
    speed = RATE.pack(0, ETHERNET, 0, 0, 0, rate)
    parameters = speed + bytes(RATE.size) + SIZES.pack(waiting_of(rate), 0, 0)
    return attribute(PARAMETERS, parameters) + attribute(BURST, struct.pack("=I", burst_of(rate)))


def _later(delay_ms: int) -> bytes:
    ticks = delay_ms * 1_000_000 // TICK_NS
    return NETEM_OPTIONS.pack(ticks, MANY, 0, 0, 0, 0)


def _add(node: Node, kind: str, options: bytes) -> None:
    with node.inside_network():
        _add_here(device_with(node.address), kind, options)


def _add_here(device: int, kind: str, options: bytes) -> None:
    body = QUEUE.pack(AF_UNSPEC, device, HANDLE, ROOT, 0)
    body += text(KIND, kind) + attribute(OPTIONS, options)
    with Kernel() as kernel:
        kernel.ask(NEW, CREATE | EXCLUSIVE, body)
