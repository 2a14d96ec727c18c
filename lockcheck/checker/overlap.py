"""Two clients certainly held an exclusive lock at once."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

from lockcheck.checker.blame import Court
from lockcheck.checker.check import Check
from lockcheck.checker.finding import Blame, Code, Culprit, Finding
from lockcheck.checker.guard import effect_of
from lockcheck.checker.order import by_key, concurrent
from lockcheck.history import History, Hold, Terms

# A hold is reported against this many of those that it found, those that end last. So up to nine
# at once are told pair by pair, and a hold that overlapped anything is always told.
TOLD_EACH = 8


def find(history: History) -> Iterator[Finding]:
    court = Court(history)
    for holds in by_key(history.holds).values():
        for found, hold in overlapping(holds):
            yield _finding(history.terms, court, found, hold)


def overlapping(holds: list[Hold]) -> Iterator[tuple[Hold, Hold]]:
    """Pairs of holds of different processes with an instant between their starts and ends.

    `holds` are of one key and in the order of their starts. Equal times are concurrent: an end
    and a start at the same nanosecond are no overlap. Forgetting an active hold when there are
    `TOLD_EACH` that end later loses no hold: as long as it would count, they do.
    """
    active: list[Hold] = []  # the one that ends last comes first
    for hold in holds:
        while active and active[-1].end_ns <= hold.start_ns:
            active.pop()
        if hold.end_ns > hold.start_ns:
            yield from ((found, hold) for found in active if found.process != hold.process)
            insort(active, hold, key=lambda hold: -hold.end_ns)
            del active[TOLD_EACH:]


def _finding(terms: Terms, court: Court, one: Hold, other: Hold) -> Finding:
    earlier, later = court.in_order(one, other)
    both_since_ns = max(one.start_ns, other.start_ns)
    blame = court.blame(earlier, later)
    return Finding(
        code=Code.OVERLAP,
        key=one.key,
        time_ns=both_since_ns,
        effect=effect_of(terms, Code.OVERLAP, blame),
        holds=(earlier, later),
        operations=() if blame.release is None else (blame.release,),
        length_ns=min(one.end_ns, other.end_ns) - both_since_ns,
        blame=blame,
        note=" ".join(_notes(earlier, later, blame)),
    )


def _notes(earlier: Hold, later: Hold, blame: Blame) -> Iterator[str]:
    if concurrent(earlier, later):
        yield "Both asked for it at the same time, so which of them was let in first is a guess."
        if earlier.start_ns > later.start_ns:
            yield "The first one's answer came last: it stood still before it read it."
    if blame.who is Culprit.CLIENT and blame.release is not None and blame.released_by is not None:
        certain = blame.release.ok and blame.release.start_ns > earlier.start_ns
        verb = "took it away" if certain else "may have taken it away"
        yield f"A blind release by {blame.released_by.node} {verb}."


CHECK = Check(
    code=Code.OVERLAP,
    meaning="two clients certainly held an exclusive lock at once",
    explanation="""\
A client certainly holds a lock from the moment at which `acquire` returned to the moment at which
it invokes `release`, is told that it lost the lock, or (if it checks its own lease) its validity
ends. If the certain holds of two clients have an instant in common, the lock did not exclude.
Times that are equal are no overlap, and neither is one that needs an answer nobody saw.

Every overlap says who is to blame. The lease of the first holder was promised at least until the
invocation of its `acquire`, or of its last renewal, plus the TTL. If the second one was let in
before that, the service broke its promise: look for a clock jump, a failover, a restart without
data. If after, the first holder outlived its lease, because it was paused or slow, and no lock
service can prevent that: only a guard at the storage does (`--guard fence` or `--guard cas`).
With such a guard, overlaps are shown and counted, but they do not fail the run.

Somebody else may have taken the lock away in between (see foreign-release). And if the machine
itself stalled, or the host's clock jumped, the run says `unknown`: it was neither the lock's fault
nor that of an injected one.""",
    find=find,
)
