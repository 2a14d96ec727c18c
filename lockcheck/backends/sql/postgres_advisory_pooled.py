"""PostgreSQL's advisory lock through a pooler that lends sessions by the transaction.

The same client, in a setup that many use unawares: the session that took the lock goes to the next
client, which is then granted the lock as well; and the release goes to another session, which holds
nothing, so that the lock stays.
"""

from __future__ import annotations

from lockcheck.backends.base import Backend, Promises
from lockcheck.backends.expected import SHORT, Expected
from lockcheck.backends.sql.postgres_advisory import ENDED_BY, AdvisoryLock
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind
from lockcheck.servers.wire.postgres import POSTGRES_ERRORS

BACKEND = Backend(
    name="postgres-advisory-pooled",
    summary="the same through PgBouncer, which lends sessions by the transaction",
    promises=Promises(session=True, fencing=True, ends_with="connection"),
    servers=(
        NodeSpec("p1", Role.SERVER, Kind("postgres")),
        NodeSpec("b1", Role.SERVER, Kind("pgbouncer")),
    ),
    connect=AdvisoryLock,
    errors=POSTGRES_ERRORS,
    contact="pgbouncer",
    accused="PgBouncer in transaction mode",
    instead="Give the lock a connection of its own, or use pg_advisory_xact_lock.",
    ended_by=ENDED_BY,
    expected=(
        # Clients share sessions, and with them their locks, without any fault.
        Expected(
            "none",
            "violation",
            (*SHORT, "--no-stop-on-violation"),
            findings=("overlap", "stale-write", "lost-update"),
            blame="service",
        ),
    ),
)
