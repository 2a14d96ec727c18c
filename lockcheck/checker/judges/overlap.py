"""Two clients certainly held an exclusive lock at once; or one of them shared it and the other did
not; or more held a semaphore than it has permits."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import Screen, most_places
from lockcheck.checker.evidence.order import concurrent
from lockcheck.checker.finding import Blame, Code, Culprit, Finding
from lockcheck.checker.wording import Words
from lockcheck.history import Ending, Hold
from lockcheck.history.ordering import BEFORE_ALL, latest_before, order_by
from lockcheck.history.scan import Scan
from lockcheck.history.table import Ints, Op, Outcome

# A hold is reported against this many of those that it found, those that end last. So up to nine
# at once are reported pair by pair, and a hold that began during another one is always reported.
PAIRS_EACH = 8
# Of the pairs in a crowd, the one with the best excuse is reported: the service is not accused
# where a holder had outlived its lease, nor a holder where the machine explains it.
EXCUSES = (
    *(Culprit.MACHINE, Culprit.CLOCKS, Culprit.CLIENT, Culprit.HOLDER),
    *(Culprit.UNKNOWN, Culprit.SERVICE),
)


def find(case: Case) -> Iterator[Finding]:
    permits = case.terms.permits
    for holds in (list(map(kept, holds)) for holds in case.holds_by_key.values()):
        if permits > 1:
            for crowd, hold in crowding(holds, permits):
                yield _finding_of_crowd(case, crowd, hold)
        else:
            for found, hold in overlapping(holds):
                pair = case.attribution.in_order(found, hold)
                yield _finding(case, pair, case.attribution.blame(*pair))


def kept(hold: Hold) -> Hold:
    """The hold up to the last renewal of its keeper that was granted, if nothing else was heard of
    it: the service itself took its client for the holder then."""
    sent_ns = max((renewal.start_ns for renewal in hold.renewals if renewal.ok), default=0)
    lasting = hold.ending is Ending.LAST_SEEN and sent_ns > hold.end_ns
    return replace(hold, end_ns=sent_ns) if lasting else hold


def overlapping(holds: list[Hold]) -> Iterator[tuple[Hold, Hold]]:
    """Pairs of holds of different processes with an instant in common.

    `holds` are of one key and in the order of their starts. Equal times are concurrent: an end
    and a start at the same nanosecond are no overlap. A hold that is not heard of after its grant
    is an instant, which lies within another hold or not. Two that share do not exclude each other.
    Forgetting an active hold when there are `PAIRS_EACH` that end later loses no hold: as long as
    it would count, they do.
    """
    sharing: list[Hold] = []  # holds that go on just now; the one that ends last comes first
    alone: list[Hold] = []
    for hold in holds:
        _drop_ended(sharing, hold.start_ns)
        _drop_ended(alone, hold.start_ns)
        against = alone if hold.shared else _last_to_end(alone, sharing)
        for found in against:
            if found.process != hold.process and _have_an_instant(found, hold):
                yield found, hold
        if hold.end_ns > hold.start_ns:
            _keep(sharing if hold.shared else alone, hold, PAIRS_EACH)


def crowding(holds: list[Hold], permits: int) -> Iterator[tuple[tuple[Hold, ...], Hold]]:
    """Each hold that began while `permits` others certainly held it, and those that end last."""
    active: list[Hold] = []
    for hold in holds:
        _drop_ended(active, hold.start_ns)
        crowd = [other for other in active if _have_an_instant(other, hold)]
        if len(crowd) == permits:
            yield tuple(crowd), hold
        if hold.end_ns > hold.start_ns:
            _keep(active, hold, permits)


def _have_an_instant(active: Hold, hold: Hold) -> bool:
    """Whether a hold that goes on when another one begins has an instant in common with it."""
    if hold.end_ns > hold.start_ns:
        return True
    return is_a_moment(hold) and active.start_ns < hold.start_ns


def is_a_moment(hold: Hold) -> bool:
    """It was over with its grant, and its client did not learn that it had ended before."""
    believed = hold.ending in (Ending.RELEASED, Ending.LAST_SEEN)
    return believed and hold.end_ns == hold.start_ns


def _drop_ended(active: list[Hold], now_ns: int) -> None:
    while active and active[-1].end_ns <= now_ns:
        active.pop()


def _keep(active: list[Hold], hold: Hold, at_most: int) -> None:
    insort(active, hold, key=lambda hold: -hold.end_ns)
    del active[at_most:]


def _last_to_end(alone: list[Hold], sharing: list[Hold]) -> list[Hold]:
    if not sharing:
        return alone
    return sorted((*alone, *sharing), key=lambda hold: -hold.end_ns)[:PAIRS_EACH]


def _finding(case: Case, holds: tuple[Hold, ...], blame: Blame) -> Finding:
    """The first two of `holds` are the pair that is to blame, in the order of their grants."""
    all_since_ns = max(hold.start_ns for hold in holds)
    return Finding(
        code=Code.OVERLAP,
        key=holds[0].key,
        time_ns=all_since_ns,
        effect=CHECK.effect(case.terms, blame),
        holds=holds,
        operations=() if blame.release is None else (blame.release,),
        length_ns=min(hold.end_ns for hold in holds) - all_since_ns,
        blame=blame,
    )


def _finding_of_crowd(case: Case, crowd: tuple[Hold, ...], hold: Hold) -> Finding:
    pairs = [case.attribution.in_order(found, hold) for found in crowd]
    blames = [case.attribution.blame(*pair) for pair in pairs]
    weights = [_weight(blame) for blame in blames]
    chosen = weights.index(min(weights))
    others = [found for found in crowd if found not in pairs[chosen]]
    others.sort(key=lambda other: other.start_ns)
    return _finding(case, (*pairs[chosen], *others), blames[chosen])


def _weight(blame: Blame) -> tuple[int, int]:
    """Of several promises that the service broke, the one that would have been over first; of
    several leases that were outlived, the one that was outlived longest."""
    by_ns = blame.by_ns if blame.who is Culprit.SERVICE else -blame.by_ns
    return EXCUSES.index(blame.who), by_ns


def _overlapping_in_columns(scan: Scan) -> Iterator[Ints]:
    """Holds of a key that have an instant in common, and all that overlap with them."""
    table, holds = scan.table, scan.holds
    if len(holds.granted) < 2:
        return
    key = table.key[holds.granted]
    latest = latest_before(key, np.maximum(holds.end, _kept_until(scan)))
    alone = holds.start >= latest
    if alone.all():
        return
    first = np.flatnonzero(alone)
    sizes = np.diff(np.append(first, len(alone)))
    several = sizes > 1
    places = zip(first[several].tolist(), sizes[several].tolist(), strict=True)
    for at, size in islice(places, most_places(scan)):
        together = slice(at, at + size)
        rows = np.concatenate((holds.granted[together], holds.ended[together]))
        yield rows[rows >= 0]


def _kept_until(scan: Scan) -> Ints:
    """For each hold when the last renewal was sent that a keeper was granted for it, or later."""
    table, granted = scan.table, scan.holds.granted
    until = np.full(len(granted), BEFORE_ALL)
    renewals = np.flatnonzero((table.f == Op.RENEW) & (table.outcome == Outcome.OK))
    renewals = renewals[table.owner[renewals] != table.process[renewals]]
    if len(renewals) == 0:
        return until
    both = np.concatenate((granted, renewals))
    place = np.concatenate((np.arange(len(granted)), np.full(len(renewals), -1)))
    time = np.concatenate((scan.holds.start, table.start[renewals]))
    order = order_by(table.key[both], table.owner[both], time, (place < 0).astype(np.int8))
    last = np.maximum.accumulate(np.where(place[order] >= 0, np.arange(len(order)), 0))
    renewed = np.flatnonzero(place[order] < 0)
    of = place[order][last[renewed]]  # of another client's, it only makes that one longer
    np.maximum.at(until, np.maximum(of, 0), time[order][renewed])
    return until


def _note(finding: Finding) -> Iterator[str]:
    blame = finding.blame
    earlier, later, *others = finding.holds
    if others:
        yield f"There are {len(others) + 1} permits, and {len(others) + 2} held one."
    if earlier.shared or later.shared:
        sharing, alone = (earlier, later) if earlier.shared else (later, earlier)
        yield f"{sharing.node} shared it with others, {alone.node} was to have it alone."
    if concurrent(earlier, later):
        yield "Both asked for it at the same time, so which of them was let in first is a guess."
        if earlier.start_ns > later.start_ns:
            yield "The first client was stopped before it read its answer."
    if blame.who is Culprit.CLIENT and blame.release is not None and blame.released_by is not None:
        certain = blame.release.ok and blame.release.start_ns > earlier.start_ns
        verb = "took it away" if certain else "may have taken it away"
        yield f"A blind release by {blame.released_by.node} {verb}."


SCREEN = Screen(places=_overlapping_in_columns)
CHECK = Check(
    code=Code.OVERLAP,
    meaning="two clients certainly held an exclusive lock at once, or more than may",
    explanation="""\
A client certainly holds a lock from the moment at which `acquire` returned to the moment at which
it invokes `release`, learns that it lost the lock, or (if it checks its own lease) its validity
ends. If the certain holds of two clients have an instant in common, the lock did not exclude. Times
that are equal are no overlap, and neither is one that needs an answer that no client saw.

Holds that share the lock (`shared`) may coexist; one that does not excludes all others. Of a
semaphore with n `permits` it is an overlap where more than n clients held one: reported once for
each client that was one too many, with all holders at that time. A client that enters a reentrant
lock again holds it until it has left as often.

Every overlap says who is to blame. The lease of the first holder was promised at least until the
invocation of its `acquire`, or of its last renewal, plus the TTL. If the second one was let in
before that, the lock server broke its promise: look for a clock jump, a failover, a restart without
data. If after, the first holder outlived its lease, because it was paused or slow, and no lock
server can prevent that: only a guard at the storage does (`--guard fence` or `--guard cas`).
With such a guard, overlaps are shown and counted, but they do not fail the run.

Another client may have taken the lock away in between (see foreign-release). And if the machine
itself stalled, or the host's clock jumped, the run says `unknown`: it was neither the lock's
fault nor that of an injected one.""",
    find=find,
    words=Words(
        one="overlap", many="overlaps", kept="holders kept apart", by_holds=True, note=_note
    ),
    screen=SCREEN,
    endangers_data=True,
)
