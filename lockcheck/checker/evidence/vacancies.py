"""Times in which no client of a history can have held a lock, and requests that were refused then
by the lock's own word, as if one did: for `stuck` and `denied`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter

from lockcheck.checker.evidence.releases import gave_back
from lockcheck.history import Effect, Ending, FaultSpan, History, Hold, Operation, Refusal, Terms
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.table import NEVER

FEWEST_REFUSED = 5  # one after the other
FEWEST_UNDISTURBED = 2
SHORTEST_NS = 1_000 * NS_PER_MS
LONGEST_ELECTION_NS = 20_000 * NS_PER_MS
LEASES = 2  # so often a lease is waited for: servers count it by clocks of their own

Interval = tuple[int, int]
_OF_THE_LOCK = (Refusal.HELD, Refusal.UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class Vacancy:
    """From when on a lock was free, and why; up to when another client may have been granted it."""

    since_ns: int
    lease_ns: int  # the longest that was asked for; 0: there is none
    needed_ns: int  # how long it must be refused to count
    last: Hold | None  # the one whose end that is
    asked: tuple[Operation, ...]  # the requests within it
    for_ever: bool  # nothing but refusals was answered from then on, and no fault was active

    @property
    def refused(self) -> list[Operation]:
        return [acquire for acquire in self.asked if acquire.refusal is Refusal.HELD]

    @property
    def failed(self) -> list[Operation]:
        """For a reason that is the lock's, and not the client's own."""
        return [acquire for acquire in self.asked if acquire.refusal in _OF_THE_LOCK]

    @property
    def end_ns(self) -> int:
        return max((acquire.last_ns for acquire in self.failed), default=self.since_ns)

    def unserved(self, faults: Iterable[FaultSpan]) -> bool:
        """Far longer than servers need to agree on who leads them, several clients got nothing but
        refusals. Those that a fault concerned do not count, and neither does the end of a run, when
        all faults are healed: whether it went on then is asked of the run as such."""
        if self.for_ever or len(self.asked) < FEWEST_REFUSED:
            return False
        active = [fault for fault in faults if fault.touches(self.since_ns, self.end_ns)]
        struck = {node for fault in active for node in (*fault.nodes, *chain(*fault.links))}
        failed = [acquire for acquire in self.failed if acquire.node not in struck]
        if _one_after_the_other(failed) < FEWEST_REFUSED or len({o.node for o in failed}) < 2:
            return False
        end_ns = max(acquire.last_ns for acquire in failed)
        return end_ns - failed[0].start_ns >= LONGEST_ELECTION_NS + self.needed_ns

    @property
    def in_vain(self) -> bool:
        """Refused again and again, for long enough, by the lock's own word; some of them to a
        client that asked alone, since clients that ask at once may keep each other from a majority.
        """
        refused = self.refused
        if _one_after_the_other(refused) < FEWEST_REFUSED:
            return False
        if max(acquire.last_ns for acquire in refused) - refused[0].start_ns < self.needed_ns:
            return False
        alone = [acquire for acquire in _undisturbed(self.asked) if acquire.refusal is Refusal.HELD]
        waited = [each for each in refused if each.last_ns - each.start_ns > self.needed_ns]
        return len(alone) + len(waited) >= FEWEST_UNDISTURBED


def vacancies(
    history: History, acquires: list[Operation], holds: list[Hold], disturbed: list[Interval]
) -> Iterator[Vacancy]:
    """Of one lock, in the order of their times: outside of its holds, of requests with an unknown
    outcome, and of disturbed times. Some of these have no known end."""
    terms = history.terms
    if terms.partial and not holds:
        return  # a client may hold it that has not been heard of
    lease_ns = _longest_lease_ns(acquires, holds, terms)
    unknown = [acquire for acquire in acquires if acquire.unknown]
    unheard = [acquire.start_ns for acquire in unknown if acquire.answer is None]
    taken: list[tuple[int, int, Hold | None]] = [
        *((*interval, None) for interval in disturbed),
        *((hold.acquire.start_ns, _gone_ns(terms, hold, lease_ns), hold) for hold in holds),
        *(
            (o.start_ns, o.last_ns + LEASES * lease_ns if lease_ns else NEVER, None)
            for o in unknown
        ),
    ]
    starts = [acquire.start_ns for acquire in acquires]
    answered = (o.start_ns for o in acquires if o.answer is not None and not o.failed)
    busy_ns = max((*answered, *(healed_ns for _, healed_ns in faulty(history))), default=0)
    # Who held it when a log began is not known.
    since_ns, last = (holds[0].start_ns if terms.partial else 0), None
    for start_ns, end_ns, hold in [*sorted(taken, key=itemgetter(0)), (NEVER, NEVER, None)]:
        if start_ns > since_ns:
            # Each that was never answered may still be granted, and lapse, once.
            late_ns = bisect_left(unheard, since_ns) * lease_ns
            needed_ns = max(SHORTEST_NS, LEASES * lease_ns) + late_ns
            within = acquires[bisect_right(starts, since_ns) : bisect_left(starts, start_ns)]
            asked = tuple(acquire for acquire in within if acquire.last_ns < start_ns)
            yield Vacancy(since_ns, lease_ns, needed_ns, last, asked, since_ns >= busy_ns)
        if end_ns >= since_ns:
            since_ns, last = end_ns, hold


def faulty(history: History) -> list[Interval]:
    """When a fault was active."""
    return [(f.start_ns, NEVER if f.healed_ns is None else f.healed_ns) for f in history.faults]


def without_majority(history: History) -> list[Interval]:
    """When a majority of the lock's servers may not have been up, and the moments at which another
    majority had to find itself. Who granted what by a wrong clock, and for how long, is not known.
    """
    servers = set(history.terms.lock_nodes)
    spans = list(zip(faulty(history), history.faults, strict=True))
    moments = sorted({moment for span, _ in spans for moment in span} | {0, NEVER})
    found = [(moment, moment) for moment in moments]
    for since_ns, until_ns in pairwise(moments):
        active = [fault for (start, end), fault in spans if start <= since_ns and end >= until_ns]
        struck = {node for fault in active for node in fault.nodes} & servers
        opaque = any(not f.nodes or f.effect in (Effect.SKEWS, None) for f in active)
        if opaque or 2 * len(struck) >= len(servers):
            found.append((since_ns, until_ns))
    return found


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
