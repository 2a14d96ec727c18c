"""kazoo's heartbeats, which it reports in its log only, and whether the installed kazoo does."""

from __future__ import annotations

import logging
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

ACCEPTED = struct.pack(">iiiqi16s", 36, 0, 200, 1, 16, b"")  # a session, and its timeout in ms
PING_ANSWERED = struct.pack(">iiqi", 16, -2, 0, 0)
PATIENCE_S = 2.0


class Heartbeats(logging.Handler):
    """Calls `sent` and `answered` for each heartbeat in kazoo's log."""

    def __init__(self, sent: Callable[[], None], answered: Callable[[], None]) -> None:
        super().__init__()
        self._sent, self._answered = sent, answered

    def emit(self, record: logging.LogRecord) -> None:
        from kazoo.protocol.serialization import Ping

        arguments = record.args if isinstance(record.args, tuple) else ()
        if any(isinstance(each, Ping) for each in arguments):
            self._sent()
        elif record.msg == "Received Ping":
            self._answered()


def log_of_heartbeats(sent: Callable[[], None], answered: Callable[[], None]) -> logging.Logger:
    """A logger for one kazoo client, which reports its heartbeats."""
    from kazoo.loggingsupport import BLATHER

    log = logging.Logger("kazoo", BLATHER)
    log.addHandler(Heartbeats(sent, answered))
    return log


def missing_in_kazoo() -> str:
    """Empty if the installed kazoo reports heartbeats, tried on a server that answers one."""
    from kazoo.client import KazooClient

    sent, answered = threading.Event(), threading.Event()
    log = log_of_heartbeats(sent.set, answered.set)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        host, port = server.getsockname()
        client = KazooClient(f"{host}:{port}", timeout=0.2, logger=log)
        client.start_async()
        with suppress(TimeoutError), server.accept()[0] as connection:
            connection.sendall(ACCEPTED + PING_ANSWERED)
            sent.wait(PATIENCE_S)
            answered.wait(PATIENCE_S)
        client.stop()
        client.close()
    return "" if sent.is_set() and answered.is_set() else "its log does not report heartbeats"
