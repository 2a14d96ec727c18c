"""What a history is about: a lock, or a register or the like, of which no word may say `lock`."""

from __future__ import annotations

from lockcheck.checker.finding import Judgement
from lockcheck.checker.words import LOCKING, amount
from lockcheck.history import History


def about_locks(history: History, judgement: Judgement) -> bool:
    """A history in which nothing happened is one of a lock: that is what was to be tested.

    Of a history with millions of operations `history` is only the part around what was found.
    """
    if judgement.counts.acquisitions or any(d.overlaps is not None for d in judgement.definitions):
        return True
    happened = judgement.counts.operations or history.operations
    return not happened or any(operation.f in LOCKING for operation in history.operations)


def clients(history: History, judgement: Judgement) -> int | None:
    """None: `history` is only a part."""
    if len(history.operations) < judgement.counts.operations:
        return None
    return len({operation.node for operation in history.operations})


def by_clients(history: History, judgement: Judgement) -> str:
    """How much there was: 10,000 operations by 5 clients."""
    many, operations = clients(history, judgement), judgement.counts.operations
    by = "" if many is None else f" by {amount(many, 'client')}"
    return f"{amount(operations, 'operation')}{by}"
