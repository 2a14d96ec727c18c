"""How soon a lock was granted again after its holder was gone: what a lease is there for."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from lockcheck.checker.case import Case
from lockcheck.checker.finding import Freed
from lockcheck.history import Effect, Ending, FaultSpan, Hold

FREEING = (Effect.ENDS, Effect.CUTS)


def freed(case: Case) -> tuple[Freed, ...]:
    """Of each hold whose client was ended or cut off while it held it, in the order of the faults.

    Who was cut off from something else than the lock's servers gives it back in the end.
    """
    terms = case.terms
    if not terms.excludes or 0 < terms.clients <= terms.permits:
        return ()  # nobody has to wait for anybody
    gone = [fault for fault in case.history.faults if fault.effect in FREEING]
    by_key = case.holds_by_key.values() if gone else ()
    return tuple(
        each for fault in gone for holds in by_key for each in _freed(fault, holds, terms.permits)
    )


def _freed(fault: FaultSpan, holds: list[Hold], permits: int) -> Iterator[Freed]:
    gone_ns, effect = fault.worked_by_ns, fault.effect
    if gone_ns is None or effect is None:
        return
    held = _held_when_ended if effect is Effect.ENDS else _held_when_cut_off
    for hold in holds:
        if hold.node in fault.nodes and held(hold, fault.start_ns, gone_ns):
            # Those who share it may have been let in at any time: they do not show that it is free.
            others = [h for h in holds if h is not hold and not (h.shared and hold.shared)]
            granted_ns = _all_held(others, permits, gone_ns)
            if not _given_back(hold, granted_ns):
                yield Freed(hold.key, hold.node, effect, gone_ns, granted_ns)


def _all_held(others: list[Hold], permits: int, since_ns: int) -> int | None:
    """When as many of the others hold it as there are permits: so that of who ended is free."""
    ends: list[int] = []  # of those that hold it
    for hold in others:
        while ends and ends[0] <= hold.start_ns:
            heappop(ends)
        heappush(ends, hold.end_ns)
        if hold.start_ns > since_ns and len(ends) >= permits:
            return hold.start_ns
    return None


def _held_when_ended(hold: Hold, began_ns: int, ended_ns: int) -> bool:
    """It had been granted it, had not begun to give it back, and was not heard of again."""
    never_released = hold.ending is Ending.LAST_SEEN and hold.release is None
    heard_last_ns = max([hold.end_ns, *(renewal.start_ns for renewal in hold.renewals)])
    return never_released and hold.start_ns <= ended_ns and began_ns <= ended_ns >= heard_last_ns


def _held_when_cut_off(hold: Hold, began_ns: int, cut_ns: int) -> bool:
    """It learns of it later, or never."""
    unended = hold.ending is Ending.LAST_SEEN
    return hold.start_ns <= began_ns and (unended or hold.end_ns >= cut_ns)


def _given_back(hold: Hold, granted_ns: int | None) -> bool:
    """So that it shows nothing of how soon it would have been free without."""
    release = hold.release
    return release is not None and (granted_ns is None or release.start_ns <= granted_ns)
