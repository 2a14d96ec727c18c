"""Times in which no client of a history can have held a lock, and requests that were refused then
by the lock's own word, as if one did: for `stuck` and `denied`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter

from lockcheck.checker.evidence.releases import gave_back
from lockcheck.history import Ending, History, Hold, Operation, Refusal, Terms
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.table import NEVER

FEWEST_REFUSED = 5  # one after the other
FEWEST_UNDISTURBED = 2
SHORTEST_NS = 1_000 * NS_PER_MS
LEASES = 2  # so often a lease is waited for: servers count it by clocks of their own


@dataclass(frozen=True, slots=True)
class Vacancy:
    """From when on a lock was free, and why; up to when another client may have been granted it."""

    since_ns: int
    needed_ns: int  # how long it must be refused to count
    last: Hold | None  # the one whose end that is
    asked: tuple[Operation, ...]  # the requests within it
    for_ever: bool  # nothing but refusals was answered from then on, and no fault was active

    @property
    def refused(self) -> list[Operation]:
        return [acquire for acquire in self.asked if acquire.refusal is Refusal.HELD]

    @property
    def end_ns(self) -> int:
        return max(acquire.last_ns for acquire in self.refused)

    @property
    def in_vain(self) -> bool:
        """Refused again and again, for long enough, by the lock's own word; some of them to a
        client that asked alone, since clients that ask at once may keep each other from a majority.
        """
        refused = self.refused
        if _one_after_the_other(refused) < FEWEST_REFUSED:
            return False
        if self.end_ns - refused[0].start_ns < self.needed_ns:
            return False
        alone = [acquire for acquire in _undisturbed(self.asked) if acquire.refusal is Refusal.HELD]
        waited = [each for each in refused if each.last_ns - each.start_ns > self.needed_ns]
        return len(alone) + len(waited) >= FEWEST_UNDISTURBED


def vacancies(history: History, acquires: list[Operation], holds: list[Hold]) -> Iterator[Vacancy]:
    """Of one lock, in the order of their times: outside of its holds, of faults, and of requests
    with an unknown outcome. Some of these have no known end."""
    terms = history.terms
    if terms.partial and not holds:
        return  # a client may hold it that has not been heard of
    lease_ns = _longest_lease_ns(acquires, holds, terms)
    unknown = [acquire for acquire in acquires if acquire.unknown]
    unheard = [acquire.start_ns for acquire in unknown if acquire.answer is None]
    taken: list[tuple[int, int, Hold | None]] = [
        *((fault.start_ns, _or_never(fault.healed_ns), None) for fault in history.faults),
        *((hold.acquire.start_ns, _gone_ns(terms, hold, lease_ns), hold) for hold in holds),
        *(
            (o.start_ns, o.last_ns + LEASES * lease_ns if lease_ns else NEVER, None)
            for o in unknown
        ),
    ]
    starts = [acquire.start_ns for acquire in acquires]
    answered = (o.start_ns for o in acquires if o.answer is not None and not o.failed)
    busy_ns = max((*answered, *(_or_never(fault.healed_ns) for fault in history.faults)), default=0)
    # Who held it when a log began is not known.
    since_ns, last = (holds[0].start_ns if terms.partial else 0), None
    for start_ns, end_ns, hold in [*sorted(taken, key=itemgetter(0)), (NEVER, NEVER, None)]:
        if start_ns > since_ns:
            # Each that was never answered may still be granted, and lapse, once.
            late_ns = bisect_left(unheard, since_ns) * lease_ns
            needed_ns = max(SHORTEST_NS, LEASES * lease_ns) + late_ns
            within = acquires[bisect_right(starts, since_ns) : bisect_left(starts, start_ns)]
            asked = tuple(acquire for acquire in within if acquire.last_ns < start_ns)
            yield Vacancy(since_ns, needed_ns, last, asked, since_ns >= busy_ns)
        if end_ns >= since_ns:
            since_ns, last = end_ns, hold


def _or_never(time_ns: int | None) -> int:
    return NEVER if time_ns is None else time_ns


def _longest_lease_ns(acquires: list[Operation], holds: list[Hold], terms: Terms) -> int:
    asked = [acquire.invoke.ttl_ms for acquire in acquires]
    asked += [renewal.invoke.ttl_ms for hold in holds for renewal in hold.renewals]
    return max((ttl_ms or 0 for ttl_ms in (*asked, terms.ttl_ms)), default=0) * NS_PER_MS


def _gone_ns(terms: Terms, hold: Hold, lease_ns: int) -> int:
    """When the hold had certainly ended, whatever its client believed; NEVER: not known."""
    release = hold.release
    if release is not None and gave_back(release, terms):
        return release.last_ns
    if not lease_ns:
        return NEVER
    # A client that never lets go may renew all the while. Ours record their renewals.
    if hold.ending is Ending.LAST_SEEN and not (terms.backend or hold.renewals):
        return NEVER
    granted = (hold.acquire, *hold.renewals)
    heard_ns = max(hold.end_ns, *(operation.last_ns for operation in granted))
    return heard_ns + LEASES * lease_ns


def _one_after_the_other(refused: list[Operation]) -> int:
    number, free_ns = 0, -1
    for acquire in sorted(refused, key=lambda acquire: acquire.last_ns):
        if acquire.start_ns > free_ns:
            number, free_ns = number + 1, acquire.last_ns
    return number


def _undisturbed(acquires: Iterable[Operation]) -> Iterator[Operation]:
    """Those during which no other client asked; one without an answer may have arrived."""
    asked, busy_until_ns = [*acquires], -1
    for number, acquire in enumerate(asked):
        following = asked[number + 1 : number + 2]
        alone = acquire.start_ns > busy_until_ns
        if alone and all(other.start_ns > acquire.last_ns for other in following):
            yield acquire
        busy_until_ns = max(busy_until_ns, acquire.last_ns)
