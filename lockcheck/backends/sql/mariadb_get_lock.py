"""MariaDB's user lock, `GET_LOCK`: held until it is released, or its connection ends.

- `GET_LOCK` waits for half a second at most, so that a client notices in time when it has to leave.
  MariaDB promises no order of waiting clients.
- A grant after a wait is confirmed by another request: a client that was stopped or cut off while
  it waited may read its grant long after the connection has ended.
- The lock of a dead client is freed by the end of its connection: at once when the process ends. If
  the client is cut off or stopped, `wait_timeout` ends its idle connection.
- The client believes in its lock for a TTL since the last answer, and the server waits twice as
  long, so a client that is cut off gives up before another one is let in.
"""

from __future__ import annotations

import time

from lockcheck.backends.base import Backend, Claim, Grant, LockSettings, Promises
from lockcheck.backends.connection_keeper import SessionLock
from lockcheck.backends.expected import SHORT, Expected, unharmed
from lockcheck.backends.expected_usual import RESTARTS
from lockcheck.history import Refusal
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind
from lockcheck.servers.wire import Address, Refused
from lockcheck.servers.wire.mariadb import MARIADB_ERRORS, MariadbSession

LOOK_S = 0.5  # the longest wait of one statement
SERVER_WAITS = 2  # TTLs


class GetLock(SessionLock[MariadbSession]):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        super().__init__()
        self._address = servers[0]
        self._ttl_s = settings.ttl_ms / 1000
        self._session: MariadbSession | None = None
        self._left: list[MariadbSession] = []  # not closed, since that would release their locks

    def acquire(self, claim: Claim) -> Grant:
        session = self._open_session()
        return self._keep(claim, session, self._ttl_s, self._take(claim, session))

    def _take(self, claim: Claim, session: MariadbSession) -> float:
        """Returns a moment before the last proof that its connection is alive."""
        since = time.monotonic()
        if self._get_lock(claim, session, 0):
            return since
        claim.queued()
        while (left_s := claim.left_s()) > 0:
            if self._get_lock(claim, session, min(left_s, LOOK_S)):
                since = time.monotonic()
                session.ping(self._ttl_s)
                return since
        raise Refused(Refusal.HELD, "waited too long")

    def _get_lock(self, claim: Claim, session: MariadbSession, wait_s: float) -> bool:
        patience_s = self._ttl_s + wait_s
        (got,) = session.ask("SELECT GET_LOCK(%s, %s)", claim.key, wait_s, timeout_s=patience_s)
        if got is None:  # it was interrupted, or has no memory
            raise Refused(Refusal.UNAVAILABLE, "the server could not wait for it")
        return got == 1

    def _open_session(self) -> MariadbSession:
        if self._session is None or self._session.ended():
            begin = f"SET SESSION wait_timeout = {wait_timeout_s(self._ttl_s)}"
            self._session = MariadbSession(self._address, self._ttl_s, begin)
        return self._session

    def release(self, grant: Grant) -> object:
        held = self._let_go(grant)
        (released,) = held.session.ask("SELECT RELEASE_LOCK(%s)", grant.key)
        if released != 1:
            raise Refused(Refusal.NOT_OWNER)
        return {"released": 1}

    def leave(self, grant: Grant) -> None:
        """Sends nothing more, so that the server ends the connection by its timeout."""
        held = self._let_go(grant)
        self._left.append(held.session)
        if held.session is self._session:
            self._session = None

    def close(self) -> None:
        super().close()
        for session in (*self._left, *([self._session] if self._session else [])):
            session.close()


def wait_timeout_s(ttl_s: float) -> int:
    """`wait_timeout`, which has a resolution of one second."""
    return int(SERVER_WAITS * ttl_s)


BACKEND = Backend(
    name="mariadb-get-lock",
    summary="one MariaDB, GET_LOCK, bound to the connection",
    promises=Promises(
        session=True,
        fencing=False,
        waits=True,
        ends_with="connection",
        lapses_after=SERVER_WAITS,
        ttl_step_ms=500,
    ),
    servers=(NodeSpec("m1", Role.SERVER, Kind("mariadb")),),
    connect=GetLock,
    errors=MARIADB_ERRORS,
    retry_ms=(1, 10),
    ended_by="wait_timeout, two TTLs after the last ping; the end of a process ends it at once",
    expected=(
        Expected("none", "ok", SHORT),
        # The server ends the connection of a stopped client without a notice.
        Expected("pause", "violation", findings=("overlap", "stale-write"), blame="holder"),
        Expected("pause", "ok", SHORT, guard="cas"),
        # A client that is cut off believes in the TTL; the server waits twice as long.
        *unharmed("kill:holder", "partition:holder"),
        *RESTARTS,
    ),
)
