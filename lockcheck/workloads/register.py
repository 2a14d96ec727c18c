"""Read, think for a while, write what was read plus one's own mark."""

from __future__ import annotations

from lockcheck.client.session import Session
from lockcheck.workloads.base import EXCLUSION, Workload

WORKLOAD = Workload(
    name="register",
    summary="read a register, think, write it back with one's own mark",
    run=lambda session: session.take_turns(Session.update),
    stores=True,
    needs=EXCLUSION,
)
