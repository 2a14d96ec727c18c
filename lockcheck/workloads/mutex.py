"""Hold the lock, touch nothing: the lock alone is judged."""

from __future__ import annotations

from lockcheck.client.claims import Held
from lockcheck.client.session import Session
from lockcheck.workloads.base import Workload


def section(session: Session, _held: Held) -> None:
    session.think()


WORKLOAD = Workload(
    name="mutex",
    summary="hold the lock for a while, without a storage",
    run=lambda session: session.take_turns(section),
    stores=False,
)
