"""kazoo's heartbeats, which it reports in its log only, and whether the installed kazoo does."""

from __future__ import annotations

import logging
import socket
import struct
import threading
from collections.abc import Callable
from io import BufferedReader

PING = struct.pack(">ii", -2, 11)
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
    """Empty if the installed kazoo reports its heartbeats, tried on a server of our own."""
    from kazoo.client import KazooClient

    sent, answered = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_answer_heartbeats, args=(listening,), daemon=True).start()
        port = listening.getsockname()[1]
        log = log_of_heartbeats(sent.set, answered.set)
        client = KazooClient(hosts=f"127.0.0.1:{port}", timeout=0.2, logger=log)
        client.start_async()
        heard = sent.wait(PATIENCE_S) and answered.wait(PATIENCE_S)
        client.stop()
        client.close()
    return "" if heard else "its log does not report heartbeats"


def _answer_heartbeats(listening: socket.socket) -> None:
    """Answers the heartbeats of one client until it sends anything else."""
    connection, _ = listening.accept()
    with connection, connection.makefile("rb") as requests:
        _next(requests)
        connection.sendall(ACCEPTED)
        while _next(requests) == PING:
            connection.sendall(PING_ANSWERED)


def _next(requests: BufferedReader) -> bytes:
    """The next request, without its length; empty at the end of the connection."""
    return requests.read(int.from_bytes(requests.read(4), "big"))
