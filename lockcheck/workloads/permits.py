"""Hold one of a semaphore's permits for a while. No register: several clients could write."""

from __future__ import annotations

from lockcheck.client.claims import Held
from lockcheck.client.session import Session
from lockcheck.workloads.base import PERMITS, Workload


def section(session: Session, _held: Held) -> None:
    session.think()


WORKLOAD = Workload(
    name="permits",
    summary="hold one of several permits for a while, without a storage",
    run=lambda session: session.take_turns(section),
    stores=False,
    needs=PERMITS,
)
