"""Hold the lock, touch nothing: the lock alone is judged."""

from __future__ import annotations

from lockcheck.workloads.base import Workload
from lockcheck.workloads.session import Held, Session


def section(session: Session, _held: Held) -> None:
    session.think()


WORKLOAD = Workload(
    name="mutex",
    summary="hold the lock for a while, without a storage",
    section=section,
    needs_storage=False,
)
