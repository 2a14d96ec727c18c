"""No lock at all: a client reads a version, and its write is accepted if that is still current.

A write that comes too late is refused, and its client starts again. An acquire only begins such an
attempt, and a release ends it.
"""

from __future__ import annotations

from functools import partial

from lockcheck.backends.base import Backend, Claim, Grant, Lock, LockSettings, Promises
from lockcheck.backends.expected import unharmed
from lockcheck.backends.expected_usual import RESTARTS
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind
from lockcheck.servers.wire import Address
from lockcheck.servers.wire.postgres import POSTGRES_ERRORS, PostgresSession
from lockcheck.storage.base import Ask, Served
from lockcheck.storage.postgres import PostgresData


class Attempts(Lock):
    """Attempts to update the data; each statement is a transaction of its own."""

    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        self._address = servers[0]
        self._ttl_ms = settings.ttl_ms
        self._open: PostgresData | None = None

    def acquire(self, claim: Claim) -> Grant:
        data = self._data()
        data.ensure(claim.key)
        return Grant(claim.key, data)

    def serve(self, grant: Grant, ask: Ask) -> Served:
        assert isinstance(grant.handle, PostgresData)  # noqa: S101 - it is our own
        return grant.handle.serve(ask, by_version=True)

    def release(self, grant: Grant) -> object:  # noqa: ARG002 - there is nothing to release
        return None

    def close(self) -> None:
        if self._open is not None:
            self._open.session.close()

    def _data(self) -> PostgresData:
        if self._open is None or self._open.session.ended():
            session = PostgresSession(self._address, self._ttl_ms / 1000)
            self._prepare(session)
            self._open = PostgresData(session)
        return self._open

    def _prepare(self, session: PostgresSession) -> None:
        """What a new session is asked first."""


SERVERS = (NodeSpec("p1", Role.SERVER, Kind("postgres")),)
on_postgres = partial(Backend, servers=SERVERS, errors=POSTGRES_ERRORS, storage="postgres")
PROMISES = Promises(session=False, fencing=False, excludes=False, tells_validity=False)

BACKEND = on_postgres(
    name="optimistic",
    summary="no lock: a version in PostgreSQL, compare and set, try again",
    promises=PROMISES,
    connect=Attempts,
    expected=(
        *unharmed("none", "pause", "kill:holder"),  # a late write is refused
        *RESTARTS,
    ),
)
