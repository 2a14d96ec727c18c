"""A session with ZooKeeper by kazoo's client: its states, and its heartbeats.

kazoo reports its heartbeats, which keep a hold alive, in its log only, so they are read there. With
a version that words them otherwise the history lacks renewals, and nothing else. `lockcheck doctor`
tries the installed one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from lockcheck.backends.base import Claim, Renewal
from lockcheck.servers.wire import Address, Phase, WireFailure
from lockcheck.servers.wire.zookeeper import log_of_heartbeats


class ZooKeeperSession:
    def __init__(self, hosts: Sequence[Address], timeout_s: float) -> None:
        self._guard = threading.Lock()
        self._claims: list[Claim] = []
        self._beats: deque[list[Renewal]] = deque()
        self.changes = 0  # of the connection
        self.over = False
        self._ended = False
        log = log_of_heartbeats(self.beat, self.beat_was_answered)
        log.addHandler(Printed(logging.INFO))
        self.client = KazooClient(
            hosts=",".join(f"{host}:{port}" for host, port in hosts),
            timeout=timeout_s,
            randomize_hosts=False,
            # It keeps trying to reach a server, at short intervals, and never sends anything twice.
            connection_retry=KazooRetry(max_tries=-1, delay=0.02, backoff=1, max_delay=0.05),
            command_retry=KazooRetry(max_tries=0),
            logger=log,
        )
        self.client.add_listener(self._changed)
        self._live = self.client.start_async()

    def connected(self, timeout_s: float) -> bool:
        """Whether it is connected now, or will be before the time is over."""
        return bool(self._live.wait(timeout_s))

    def ask(self, what: Callable[[KazooClient], Any], timeout_s: float) -> Any:
        """The answer to one of kazoo's asynchronous calls, or a WireFailure.

        After the session has expired nothing is sent: kazoo would send it in a new session that it
        begins by itself, and delete another client's node of the same name. Calls from before fail
        once kazoo has reported the end.
        """
        try:
            with self._guard:
                if self.over:
                    raise SessionExpiredError
                asked = what(self.client)
            return asked.get(timeout=timeout_s)
        except (KazooException, KazooTimeoutError) as error:
            raise WireFailure(Phase.COMMAND, "zookeeper", error) from error

    def holds(self, claim: Claim, seen: int) -> bool:
        """Registers a claim for losses; False if the connection has changed since `seen`."""
        with self._guard:
            if self.changes != seen or self.over:
                return False
            self._claims.append(claim)
            return True

    def drop(self, claim: Claim) -> None:
        with self._guard:
            self._claims = [each for each in self._claims if each is not claim]

    def end(self) -> None:
        """Ends the session and its nodes: at once, or by its timeout if no server can be reached.

        Only the first call does anything: two threads cannot stop kazoo at the same time.
        """
        with self._guard:
            ended, self._ended = self._ended, True
        self.over = True
        if ended:
            return
        try:
            self.client.stop()
            self.client.close()
        except KazooException as error:
            print(f"a session was not ended: {error!r}", flush=True)

    def _changed(self, state: str) -> None:
        """Called on kazoo's own thread."""
        if state == KazooState.CONNECTED:
            return
        with self._guard:
            self.changes += 1
            self.over = self.over or state == KazooState.LOST
            claims, beats = list(self._claims), list(self._beats)
            self._beats.clear()
        for renewal in (each for beat in beats for each in beat):
            renewal.failed(WireFailure(Phase.COMMAND, "zookeeper", ConnectionLoss()))
        for claim in claims:
            claim.lost(f"its session is {state}")

    def beat(self) -> None:
        with self._guard:
            claims = list(self._claims)
        self._beats.append([claim.renewing() for claim in claims])

    def beat_was_answered(self) -> None:
        for renewal in self._beats.popleft() if self._beats else ():
            renewal.granted(None)


class Printed(logging.Handler):
    """Prints kazoo's log into the client's output.log."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f"{time.monotonic():.3f} kazoo: {record.getMessage()}", flush=True)
