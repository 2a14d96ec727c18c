"""Read, think for a while, write what was read plus one's own mark."""

from __future__ import annotations

from lockcheck.workloads.base import Workload
from lockcheck.workloads.session import Held, Session


def section(session: Session, held: Held) -> None:
    base = session.read(held)
    session.think()
    session.write_mark(held, base)


WORKLOAD = Workload(
    name="register",
    summary="read a register, think, write it back with one's own mark",
    section=section,
    needs_storage=True,
)
