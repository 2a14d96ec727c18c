"""Limits the rate (tbf) or delays (netem) the packets that leave a node, by a queue of its own.

Packets that wait in the queue are lost when it is removed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from errno import EINVAL, ENOENT
from socket import AF_UNSPEC, if_nametoindex

from lockcheck.nodes.netlink import CREATE, EXCLUSIVE, Kernel, attribute, device_with, text
from lockcheck.nodes.node import Node

NEW, DELETE = 36, 37  # RTM_NEWQDISC, RTM_DELQDISC
ROOT, HANDLE = 0xFFFFFFFF, 0x10000  # of the device; "1:"
KIND, OPTIONS = 1, 2  # TCA_KIND, TCA_OPTIONS
QUEUE = struct.Struct("=BxxxiIII")  # family, device, handle, parent, info

PARAMETERS, BURST = 1, 6  # TCA_TBF_PARMS, TCA_TBF_BURST
RATE = struct.Struct("=BBHhHI")  # cells, link layer, overhead, alignment, least, bytes per second
ETHERNET = 1  # so that the kernel needs no table of times
SIZES = struct.Struct("=III")  # limit in bytes; two that other fields replace
FULL_PACKET = 1514
NETEM_OPTIONS = struct.Struct("=IIIIII")  # latency in ticks, limit in packets, and four others
TICK_NS = 64
MANY = 10_000


def burst_of(rate: int) -> int:
    """How many bytes pass at once: those of 10 ms, and at least a full packet."""
    return max(FULL_PACKET, rate // 100)


def limit_of(rate: int) -> int:
    """How many bytes may wait: those of half a second, and at least a full packet."""
    return max(FULL_PACKET, rate // 2)


@dataclass(frozen=True, slots=True)
class Queue:
    """A queueing discipline, as the kernel is told of it."""

    kind: str
    options: bytes


def limiting(rate: int) -> Queue:
    """`rate` is in bytes per second."""
    speed = RATE.pack(0, ETHERNET, 0, 0, 0, rate)
    parameters = speed + bytes(RATE.size) + SIZES.pack(limit_of(rate), 0, 0)
    burst = attribute(BURST, struct.pack("=I", burst_of(rate)))
    return Queue("tbf", attribute(PARAMETERS, parameters) + burst)


def delaying(delay_ms: int) -> Queue:
    ticks = delay_ms * 1_000_000 // TICK_NS
    return Queue("netem", NETEM_OPTIONS.pack(ticks, MANY, 0, 0, 0, 0))


def add(node: Node, queue: Queue) -> None:
    with node.inside_network():
        _add_here(device_with(node.address), queue)


def try_here(queue: Queue) -> None:
    """Raises OSError if this kernel cannot."""
    _add_here(if_nametoindex("lo"), queue)


def remove(node: Node) -> None:
    """Removes the qdisc; harmless if there is none."""
    with node.inside_network(), Kernel() as kernel:
        try:
            kernel.ask(DELETE, 0, QUEUE.pack(AF_UNSPEC, device_with(node.address), HANDLE, ROOT, 0))
        except OSError as error:
            if error.errno not in (ENOENT, EINVAL):  # the kernel's errors if there is none
                raise


def _add_here(device: int, queue: Queue) -> None:
    body = QUEUE.pack(AF_UNSPEC, device, HANDLE, ROOT, 0)
    body += text(KIND, queue.kind) + attribute(OPTIONS, queue.options)
    with Kernel() as kernel:
        kernel.ask(NEW, CREATE | EXCLUSIVE, body)
