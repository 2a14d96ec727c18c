"""Sends netlink messages to the kernel about this thread's network, and reads its answers.

Made here: pyroute2 needs 14 MB, 0.4 s to be imported, and an event loop of its own, while the
agent's is running. Tests look at what they did with pyroute2.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from errno import ENODEV
from fcntl import ioctl
from typing import Self

ERROR, REQUEST, ACKNOWLEDGE = 2, 0x1, 0x4
REPLACE, EXCLUSIVE, CREATE = 0x100, 0x200, 0x400
SIOCGIFADDR = 0x8915
HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, sender
ATTRIBUTE = struct.Struct("=HH")  # length, type
ANSWER_TIMEOUT_S = 1.0
LONGEST_ANSWER = 1 << 16


@dataclass(frozen=True, slots=True)
class NetlinkMessage:
    kind: int
    flags: int
    body: bytes

    def packed(self, sequence: int) -> bytes:
        length = HEADER.size + len(self.body)
        return HEADER.pack(length, self.kind, REQUEST | self.flags, sequence, 0) + self.body


class Kernel:
    """A netlink socket, which stays in the network in which it is created."""

    def __init__(self, family: int = socket.NETLINK_ROUTE) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
        self._socket.settimeout(ANSWER_TIMEOUT_S)
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, kind: int, flags: int, body: bytes) -> None:
        """Sends one message; returns when it has taken effect, or raises the kernel's OSError."""
        self.ask_batch([NetlinkMessage(kind, flags | ACKNOWLEDGE, body)])

    def ask_batch(self, messages: Iterable[NetlinkMessage]) -> None:
        """Sends the messages together; returns when they are acknowledged, or raises an OSError."""
        first, awaited, sent = self._sequence + 1, set[int](), b""
        for message in messages:
            self._sequence += 1
            sent += message.packed(self._sequence)
            if message.flags & ACKNOWLEDGE:
                awaited.add(self._sequence)
        self._socket.send(sent)
        while awaited:
            for sequence, number in _errors(self._socket.recv(LONGEST_ANSWER)):
                if sequence >= first and number:
                    raise OSError(number, os.strerror(number))
                awaited.discard(sequence)


def _errors(answer: bytes) -> Iterable[tuple[int, int]]:
    """The sequence number of each request that was answered, and its error number or 0."""
    at = 0
    while at + HEADER.size <= len(answer):
        length, kind, _, sequence, _ = HEADER.unpack_from(answer, at)
        if kind == ERROR:
            (number,) = struct.unpack_from("=i", answer, at + HEADER.size)
            yield sequence, -number
        at += max(HEADER.size, -(-length // 4) * 4)


def attribute(kind: int, value: bytes) -> bytes:
    """A netlink attribute, padded to four bytes."""
    padding = bytes(-len(value) % 4)
    return ATTRIBUTE.pack(ATTRIBUTE.size + len(value), kind) + value + padding


def text(kind: int, value: str) -> bytes:
    """An attribute that holds a C string."""
    return attribute(kind, value.encode() + b"\0")


def device_with(address: str) -> int:
    """The index of this network's interface with that address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for index, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            try:
                answer = ioctl(any_socket, SIOCGIFADDR, request)
            except OSError:
                continue  # it has no address
            if socket.inet_ntoa(answer[20:24]) == address:
                return index
    raise OSError(ENODEV, f"no network interface here has the address {address}")
