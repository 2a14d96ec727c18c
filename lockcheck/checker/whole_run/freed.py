"""How soon a lock was granted again after its holder was ended or cut off."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush

from lockcheck.checker.case import Case
from lockcheck.checker.finding import Freed
from lockcheck.history import Effect, Ending, FaultSpan, Hold

FREEING = (Effect.ENDS, Effect.CUTS)


def freed(case: Case) -> tuple[Freed, ...]:
    """One for each hold whose client was ended or cut off during it, in the order of the faults. It
    is not counted where the client could still reach the servers and released it in the end."""
    terms = case.terms
    if not terms.excludes or 0 < terms.clients <= terms.permits:
        return ()  # no client has to wait for another
    gone = [fault for fault in case.history.faults if fault.effect in FREEING]
    if not gone:
        return ()
    gone.sort(key=lambda fault: fault.worked_by_ns or fault.start_ns)
    grants = _Grants(case.holds_by_key, terms.permits)
    return tuple(each for fault in gone for each in grants.freed_by(fault))


class _Grants:
    def __init__(self, holds_by_key: dict[str, list[Hold]], permits: int) -> None:
        self._by_key = holds_by_key
        self._permits = permits
        self._of_node: defaultdict[str, list[Hold]] = defaultdict(list)
        for hold in (hold for holds in holds_by_key.values() for hold in holds):
            self._of_node[hold.node].append(hold)

    def freed_by(self, fault: FaultSpan) -> Iterator[Freed]:
        gone_ns, effect = fault.worked_by_ns, fault.effect
        if gone_ns is None or effect is None:
            return
        was_held = _held_when_ended if effect is Effect.ENDS else _held_when_cut_off
        for node in fault.nodes:
            held = [h for h in self._of_node[node] if was_held(h, fault.start_ns, gone_ns)]
            if effect is Effect.ENDS:  # a client that is started again has none of its holds
                self._of_node[node] = [h for h in self._of_node[node] if h.start_ns > gone_ns]
            for hold in held:
                granted_ns = self._granted_again_ns(hold, gone_ns)
                if not _given_back(hold, granted_ns):
                    yield Freed(hold.key, hold.node, effect, gone_ns, granted_ns)

    def _granted_again_ns(self, gone: Hold, since_ns: int) -> int | None:
        """The first grant at which `permits` other clients hold the lock: the dead client's permit
        is free by then. A shared grant beside a shared hold does not show that."""
        holds = self._by_key[gone.key]
        one_alone = self._permits == 1  # any later grant shows it
        first = bisect_right(holds, since_ns, key=lambda h: h.start_ns) if one_alone else 0
        ends: list[int] = []  # of those that hold it
        for number in range(first, len(holds)):
            hold = holds[number]
            if hold is gone or (hold.shared and gone.shared):
                continue
            while ends and ends[0] <= hold.start_ns:
                heappop(ends)
            heappush(ends, hold.end_ns)
            if hold.start_ns > since_ns and len(ends) >= self._permits:
                return hold.start_ns
        return None


def _held_when_ended(hold: Hold, began_ns: int, ended_ns: int) -> bool:
    """It was granted by then, its release had not begun, and the client was not heard of again."""
    never_released = hold.ending is Ending.LAST_SEEN and hold.release is None
    heard_last_ns = max([hold.end_ns, *(renewal.start_ns for renewal in hold.renewals)])
    return never_released and hold.start_ns <= ended_ns and began_ns <= ended_ns >= heard_last_ns


def _held_when_cut_off(hold: Hold, began_ns: int, cut_ns: int) -> bool:
    """It was held during the cut, of which its client learns later, or never."""
    unended = hold.ending is Ending.LAST_SEEN
    return hold.start_ns <= began_ns and (unended or hold.end_ns >= cut_ns)


def _given_back(hold: Hold, granted_ns: int | None) -> bool:
    """The client released it, which does not show when it would have been free without that."""
    release = hold.release
    return release is not None and (granted_ns is None or release.start_ns <= granted_ns)
