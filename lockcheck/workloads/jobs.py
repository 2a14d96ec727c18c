"""Look which job was done last, think for a while, do the next one, which must be done once."""

from __future__ import annotations

from lockcheck.client.claims import Held
from lockcheck.client.session import Session
from lockcheck.workloads.base import EXCLUSION, Workload

PREFIX = "job-"


def section(session: Session, held: Held) -> None:
    last = session.look(held)
    session.think()
    session.run_job(held, after(last), last)


def after(last: str | None) -> str:
    """The next job of a key. Jobs are numbered, so clients that saw the same choose the same."""
    done = int(last.removeprefix(PREFIX)) if last else 0
    return f"{PREFIX}{done + 1}"


WORKLOAD = Workload(
    name="jobs",
    summary="look which job was done last, think, do the next one: each must be done once",
    run=lambda session: session.take_turns(section),
    stores=True,
    needs=EXCLUSION,
)
