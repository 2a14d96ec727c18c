"""Read, think for a while, write what was read plus one's own mark."""

from __future__ import annotations

from lockcheck.client.session import Session
from lockcheck.workloads.base import EXCLUSION, Workload


def run(session: Session) -> None:
    session.take_turns(Session.update)


WORKLOAD = Workload(
    name="register",
    summary="read a register, think, write it back with one's own mark",
    run=run,
    stores=True,
    needs=EXCLUSION,
)
