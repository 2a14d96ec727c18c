"""No lock at all: a job is done by inserting its name, of which there can be one only.

A second client reads which one was first, and does nothing.
"""

from __future__ import annotations

from lockcheck.backends.base import Backend
from lockcheck.backends.expected import unharmed
from lockcheck.backends.sql.optimistic import PROMISES, SERVERS, Attempts
from lockcheck.servers.wire.postgres import POSTGRES_ERRORS

BACKEND = Backend(
    name="idempotent",
    summary="no lock: a unique key for each job in PostgreSQL, the first one wins",
    promises=PROMISES,
    servers=SERVERS,
    connect=Attempts,
    errors=POSTGRES_ERRORS,
    storage="postgres",
    workload="jobs",
    expected=unharmed("none", "pause", "kill:holder", "kill:server"),  # a late job was done by then
)
