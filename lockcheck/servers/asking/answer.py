"""Asks a server how it is, from within the network of some node."""

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
    return await answer(viewer, address, question) is not None


async def answer(viewer: Node, address: Address, question: Question) -> re.Match[bytes] | None:
    """None if it does not come in time. The time is short: faults have to be healed."""
    with viewer.inside_network():
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            return await _hears(connection, address, question)
    except OSError:  # refused, unreachable, broken, timed out
        return None
    finally:
        connection.close()


async def _hears(
    connection: socket.socket, address: Address, question: Question
) -> re.Match[bytes] | None:
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, address)
    await loop.sock_sendall(connection, question.ask)
    said = b""
    while len(said) < MOST_BYTES and (more := await loop.sock_recv(connection, 4096)):
        said += more
        if found := re.search(question.answer, said, re.DOTALL):
            return found
    return None
