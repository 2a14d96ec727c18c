"""The simulated locks, by name: those that are right, and those that are wrong in one way."""

from __future__ import annotations

from tests.simulation.locks.base import LockKind
from tests.simulation.locks.company import COMPANY
from tests.simulation.locks.majority import MAJORITY, MINORITY
from tests.simulation.locks.queue import PATIENT, QUEUE, UNFAIR
from tests.simulation.locks.single import FENCED, SINGLE
from tests.simulation.locks.wrong import WRONG

LOCKS: dict[str, LockKind] = {
    kind.name: kind
    for kind in (SINGLE, FENCED, MAJORITY, QUEUE, PATIENT, UNFAIR, MINORITY, *COMPANY, *WRONG)
}

__all__ = ["LOCKS", "LockKind"]
