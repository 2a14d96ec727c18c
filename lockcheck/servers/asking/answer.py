"""Asks a server about its state, from within a node's network."""

from __future__ import annotations

import asyncio
import re
import socket

from lockcheck.nodes.node import Node
from lockcheck.servers.base import Question
from lockcheck.servers.wire import Address

ANSWER_TIMEOUT_S = 0.3
MOST_BYTES = 1 << 16


async def answers(viewer: Node, address: Address, question: Question) -> bool:
    """Whether the server answers as the question wants, within `ANSWER_TIMEOUT_S`."""
    return await answer(viewer, address, question) is not None


async def answer(viewer: Node, address: Address, question: Question) -> re.Match[bytes] | None:
    """The match in the server's answer; None if there is none within `ANSWER_TIMEOUT_S`."""
    with viewer.inside_network():
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            return await _ask(connection, address, question)
    except OSError:  # refused, unreachable, broken, timed out
        return None
    finally:
        connection.close()


async def _ask(
    connection: socket.socket, address: Address, question: Question
) -> re.Match[bytes] | None:
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, address)
    await loop.sock_sendall(connection, question.ask)
    received = b""
    while len(received) < MOST_BYTES and (more := await loop.sock_recv(connection, 4096)):
        received += more
        if found := re.search(question.answer, received, re.DOTALL):
            return found
    return None
