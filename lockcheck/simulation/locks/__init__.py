"""The simulated locks, by name: those that are right, and those that are wrong in one way."""

from __future__ import annotations

from lockcheck.simulation.locks.base import LockKind
from lockcheck.simulation.locks.company import COMPANY
from lockcheck.simulation.locks.majority import MAJORITY, MINORITY
from lockcheck.simulation.locks.queue import PATIENT, QUEUE, UNFAIR
from lockcheck.simulation.locks.single import FENCED, SINGLE
from lockcheck.simulation.locks.wrong import WRONG

LOCKS: dict[str, LockKind] = {
    kind.name: kind
    for kind in (SINGLE, FENCED, MAJORITY, QUEUE, PATIENT, UNFAIR, MINORITY, *COMPANY, *WRONG)
}

__all__ = ["LOCKS", "LockKind"]
