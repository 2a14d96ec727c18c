"""A keeper for locks that last as long as a connection, such as those of a database's session.

Three pings per TTL prove that the connection is alive, and renew the hold. The keeper also watches
the connection: if the server closes it, or the network reports its end, the hold is lost at once.
So it is if no ping was answered for a TTL.

After a pause of the whole process the connection, and with it the hold, may still be alive.
"""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lockcheck.backends.base import Claim, Grant
from lockcheck.backends.keeper import Keeper, KeptAliveLock
from lockcheck.servers.wire import Refused, WireFailure


class Connection(Protocol):
    """A connection that several threads can use, one after the other."""

    def fileno(self) -> int:
        """A descriptor that is readable when the connection has ended."""

    def ended(self) -> bool:
        """Whether it has ended, as far as this side knows; does not block."""

    def ping(self, timeout_s: float) -> None:
        """Raises WireFailure if there is no answer in time; the connection has ended then."""


class ConnectionKeeper(Keeper):
    """Pings a connection, and watches for its end."""

    def __init__(self, claim: Claim, connection: Connection, ttl_s: float, since: float) -> None:
        """`since`: a moment before the last proof that the connection is alive."""
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
                with suppress(Refused, WireFailure):  # the history has the reason, and it has ended
                    self.renew()
            if self._connection.ended():
                self._lose("its connection has ended")
                return

    def _is_due(self) -> bool:
        """Waits until a ping is due or the connection has ended; False: the keeper must stop."""
        until = time.monotonic() + self._interval_s
        while (left_s := until - time.monotonic()) > 0 and not self._stopping.is_set():
            watched: list[Connection | socket.socket] = [self._connection, self._woken]
            readable, _, _ = select.select(watched, [], [], left_s)
            if self._connection in readable and self._connection.ended():
                break
        return not self._stopping.is_set()


S = TypeVar("S", bound=Connection)


@dataclass(frozen=True, slots=True)
class HeldSession(Generic[S]):
    session: S
    keeper: ConnectionKeeper

    def stop(self) -> None:
        self.keeper.stop()


class SessionLock(KeptAliveLock[HeldSession[S]]):
    """A lock that lasts as long as the session of a connection."""

    def _keep(
        self, claim: Claim, session: S, ttl_s: float, since: float, token: int | None = None
    ) -> Grant:
        held = HeldSession(session, ConnectionKeeper(claim, session, ttl_s, since))
        held.keeper.start()
        return self._granted(claim, held, token)
