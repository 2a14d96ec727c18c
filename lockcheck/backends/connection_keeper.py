"""A keeper for what lasts as long as a connection: a database's session, and the locks in it.

Three pings per TTL show that the connection is alive, and renew the hold. The keeper also listens
to the connection: if the server ends it, or the network reports its end, the hold is lost at once.
A ping without an answer within a TTL since the last one ends it, too.

After a pause of the whole process the connection may still be alive, and with it the hold.
"""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from typing import Generic, NamedTuple, Protocol, TypeVar

from lockcheck.backends.base import Claim
from lockcheck.backends.keeper import Keeper
from lockcheck.servers.wire import Refused, WireFailure


class Connection(Protocol):
    """Can be used by several threads; each waits until the others are answered."""

    def fileno(self) -> int:
        """Readable when it has ended."""

    def ended(self) -> bool:
        """Whether it has, as far as this side knows; does not wait."""

    def ping(self, timeout_s: float) -> None:
        """Raises WireFailure if there is no answer in time; then it has ended."""


S = TypeVar("S", bound=Connection)


class HeldSession(NamedTuple, Generic[S]):
    session: S
    keeper: ConnectionKeeper


class ConnectionKeeper(Keeper):
    """`since`: a moment before the connection was seen to be alive."""

    def __init__(self, claim: Claim, connection: Connection, ttl_s: float, since: float) -> None:
        super().__init__(claim, self._ping, ttl_s, since)
        self._connection = connection
        self._waker, self._woken = socket.socketpair()

    def stop(self) -> None:
        self._stopping.set()
        self._waker.close()
        super().stop()

    def _ping(self, _timeout_s: float) -> None:
        self._connection.ping(self._ttl_s - self._interval_s)

    def _keep(self) -> None:
        while self._is_due():
            if not self._connection.ended():
                with suppress(Refused, WireFailure):  # the renewal says why, and it has ended
                    self.renew()
            if self._connection.ended():
                self._tell("its connection has ended")
                return

    def _is_due(self) -> bool:
        """Waits until a ping is due, or the connection has ended; False: it must stop."""
        until = time.monotonic() + self._interval_s
        while (left_s := until - time.monotonic()) > 0 and not self._stopping.is_set():
            listened_to: list[Connection | socket.socket] = [self._connection, self._woken]
            heard, _, _ = select.select(listened_to, [], [], left_s)
            if self._connection in heard and self._connection.ended():
                break
        return not self._stopping.is_set()
