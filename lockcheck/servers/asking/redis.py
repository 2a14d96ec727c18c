"""Sends commands to Redis servers and Sentinels from within a node's network, in asyncio."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TypeAlias

from lockcheck.errors import FaultError
from lockcheck.nodes.node import Node

ANSWER_TIMEOUT_S = 1.0

Reply: TypeAlias = "int | str | list[Reply] | None"


async def ask(viewer: Node, server: Node, port: int, *words: str) -> Reply:
    """The reply to one command. Raises FaultError if there is none in time, or it is an error."""
    with viewer.inside_network():
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            await asyncio.get_running_loop().sock_connect(connection, (server.address, port))
            return await _exchange(connection, words)
    except (OSError, EOFError) as error:  # a timeout is an OSError, too
        why = str(error) or type(error).__name__
        raise FaultError(f"{server.name} does not answer {words[0]}: {why}") from error
    finally:
        connection.close()


async def _exchange(connection: socket.socket, words: tuple[str, ...]) -> Reply:
    reader, writer = await asyncio.open_connection(sock=connection)
    try:
        writer.write(_encoded(words))
        return await _answer(reader)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _encoded(words: tuple[str, ...]) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in map(str.encode, words)]
    return b"".join(parts)


async def _answer(reader: asyncio.StreamReader) -> Reply:
    line = await reader.readuntil(b"\r\n")
    kind, rest = line[:1], line[1:-2].decode()
    if kind == b"-":
        raise FaultError(f"a server answers with an error: {rest}")
    if kind == b":":
        return int(rest)
    if kind in (b"*", b"$") and int(rest) < 0:
        return None
    if kind == b"*":
        return [await _answer(reader) for _ in range(int(rest))]
    if kind == b"$":
        return (await reader.readexactly(int(rest) + 2))[:-2].decode(errors="replace")
    return rest
