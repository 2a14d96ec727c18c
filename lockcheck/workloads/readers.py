"""Most turns share the lock and read, the others have it alone and write."""

from __future__ import annotations

from lockcheck.backends.base import Mode
from lockcheck.client.claims import Held
from lockcheck.client.session import Session
from lockcheck.workloads.base import SHARING, Workload

# The share of readers: enough that they meet, and that writers find a moment without any.
READERS = 0.6


def mode(session: Session) -> Mode:
    return Mode.SHARED if session.settings.choices.random() < READERS else Mode.EXCLUSIVE


def section(session: Session, held: Held) -> None:
    if held.claim.mode is Mode.EXCLUSIVE:
        session.update(held)
    else:
        session.read(held)
        session.think()


WORKLOAD = Workload(
    name="readers",
    summary="most turns share the lock and read a register, the others have it alone and write it",
    run=lambda session: session.take_turns(section, mode),
    stores=True,
    needs=SHARING,
)
