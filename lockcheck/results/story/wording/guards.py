"""What guards the data, by the name that people know it by."""

from __future__ import annotations

from lockcheck.history import Terms
from lockcheck.history.event import TRANSACTION

NAMES = {"fence": "the fence", "cas": "compare-and-set", TRANSACTION: "the transaction"}


def guard_name(terms: Terms) -> str:
    return NAMES.get(terms.guard, "the guard")
