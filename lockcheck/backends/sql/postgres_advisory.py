"""PostgreSQL's advisory lock of a session: held until it is unlocked, or its connection ends.

- `pg_try_advisory_lock`, repeatedly, instead of the waiting form: an attempt that never queues need
  not be withdrawn, and a client that is cut off is not let in meanwhile.
- The token is taken from a sequence, in the same statement, once the lock is held: every other
  holder took its own before, or will after the release.
- A lock that a session took twice has to be released twice, so a session that does not answer in
  time is closed.
- The end of a dead client's connection frees its lock. TCP may be silent for a TTL, but at least
  for two seconds, the finest setting. A stopped process still has a connection, and keeps its lock.
"""

from __future__ import annotations

import time

from lockcheck.backends.base import Backend, Claim, Grant, LockSettings, Promises
from lockcheck.backends.connection_keeper import SessionLock
from lockcheck.backends.expected import unharmed
from lockcheck.backends.expected_usual import DISK_FAILS, RESTARTS
from lockcheck.history import Refusal
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind
from lockcheck.servers.wire import Address, Refused, WireFailure
from lockcheck.servers.wire.postgres import POSTGRES_ERRORS, PostgresSession

PREPARE = "CREATE SEQUENCE IF NOT EXISTS lockcheck_token;"
TAKE = """
SELECT CASE WHEN pg_try_advisory_lock(hashtextextended($1, 0)) THEN nextval('lockcheck_token') END
"""
GIVE = "SELECT pg_advisory_unlock(hashtextextended($1, 0))"
# A silent connection is probed twice, and ended if there is no answer.
PROBES = 2
LISTEN = """
SELECT set_config('tcp_keepalives_idle', $1, false),
       set_config('tcp_keepalives_interval', $1, false),
       set_config('tcp_keepalives_count', $2, false), set_config('tcp_user_timeout', $3, false)
"""


class AdvisoryLock(SessionLock[PostgresSession]):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        super().__init__()
        self._address = servers[0]
        self._ttl_ms = settings.ttl_ms
        self._session: PostgresSession | None = None

    def acquire(self, claim: Claim) -> Grant:
        session, since = self._open_session(), time.monotonic()
        try:
            [(token,)] = session.ask(TAKE, claim.key)
        except WireFailure:
            session.close()  # an error does not undo a lock that was taken before it
            raise
        if token is None:
            raise Refused(Refusal.HELD)
        return self._keep(claim, session, self._ttl_ms / 1000, since, int(token))

    def release(self, grant: Grant) -> object:
        held = self._let_go(grant)
        [(removed,)] = held.session.ask(GIVE, grant.key)
        if removed != "t":
            raise Refused(Refusal.NOT_OWNER)
        return {"removed": 1}

    def leave(self, grant: Grant) -> None:
        """Closes the connection when its lease is over, as if the client were cut off now."""
        held = self._let_go(grant)
        time.sleep(held.keeper.left_s())
        held.session.close()

    def close(self) -> None:
        super().close()
        if self._session is not None:
            self._session.close()

    def _open_session(self) -> PostgresSession:
        if self._session is None or self._session.ended():
            session = PostgresSession(self._address, self._ttl_ms / 1000)
            session.ask(LISTEN, seconds_of_silence(self._ttl_ms), PROBES - 1, self._ttl_ms)
            session.prepare(PREPARE)
            self._session = session  # only now: on a full disk the sequence could not be created
        return self._session


def seconds_of_silence(ttl_ms: int) -> int:
    """The time before the first probe, and again before the connection ends."""
    return -(-ttl_ms // (1000 * PROBES))


ENDED_BY = (
    "the end of the process, at once; or the server's TCP: tcp_user_timeout = TTL, "
    "tcp_keepalives_idle = tcp_keepalives_interval = TTL / 2 in whole seconds"
)

BACKEND = Backend(
    name="postgres-advisory",
    summary="one PostgreSQL, pg_try_advisory_lock in a session",
    promises=Promises(session=True, fencing=True, ends_with="connection"),
    servers=(NodeSpec("p1", Role.SERVER, Kind("postgres")),),
    connect=AdvisoryLock,
    errors=POSTGRES_ERRORS,
    ended_by=ENDED_BY,
    expected=(
        # A stopped client still has a connection, and keeps the lock. One that is cut off notices
        # before the server does.
        *unharmed("none", "pause", "kill:holder", "partition:holder"),
        *RESTARTS,
        *DISK_FAILS,
    ),
)
