"""No lock at all: a job is done by inserting its name, of which there can be one only.

A second client reads which one was first, and does nothing.
"""

from __future__ import annotations

from lockcheck.backends.expected import unharmed
from lockcheck.backends.expected_usual import RESTARTS
from lockcheck.backends.sql.optimistic import PROMISES, Attempts, on_postgres

BACKEND = on_postgres(
    name="idempotent",
    summary="no lock: a unique key for each job in PostgreSQL, the first one wins",
    promises=PROMISES,
    connect=Attempts,
    workload="jobs",
    expected=(
        *unharmed("none", "pause", "kill:holder"),  # a late job was done by then
        *RESTARTS,
    ),
)
