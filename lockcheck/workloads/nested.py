"""Enter a held lock again, as code does that calls code with the same lock."""

from __future__ import annotations

from lockcheck.client.claims import Held
from lockcheck.client.session import Session
from lockcheck.workloads.base import REENTRY, Workload

USUAL, DEEPEST = 2, 3  # levels
DEEPER = 0.3  # the probability of one more level than usual
WORKS_ON = 0.5  # the probability of another update after an inner level was left


def section(session: Session, held: Held, level: int = 1) -> None:
    """After an inner level the client still holds the lock, and may write once more."""
    choices = session.settings.choices
    session.update(held)
    if level < USUAL or (level < DEEPEST and choices.random() < DEEPER):
        with session.entered_again(held) as again:
            section(session, again, level + 1)
        if choices.random() < WORKS_ON:
            session.update(held)


WORKLOAD = Workload(
    name="nested",
    summary="enter the lock again while holding it; read and write a register on several levels",
    run=lambda session: session.take_turns(section),
    stores=True,
    needs=REENTRY,
)
