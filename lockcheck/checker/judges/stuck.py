"""After the faults healed and every lease has run out, the lock cannot be acquired."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import Screen
from lockcheck.checker.evidence.releases import gave_back
from lockcheck.checker.evidence.stalls import clipped, total_ns
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Reason
from lockcheck.checker.wording import NAMED_AT_MOST, Words
from lockcheck.history import Ending, Hold, Operation, Refusal, Terms
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.scan import Scan
from lockcheck.history.table import Op, Outcome
from lockcheck.words import lock_name, names

FEWEST_REFUSED = 5  # one after the other
FEWEST_UNDISTURBED = 2
SHORTEST_NS = 1_000 * NS_PER_MS
LEASES = 2  # so often a lease is waited for: servers count it by clocks of their own

REFUSED = (
    "By then every hold had been released, or its lease had run out, and every fault was"
    " healed. {number} requests were refused from then on, for {long}, up to the end."
)


@dataclass(frozen=True, slots=True)
class _Free:
    """From when on a lock must be free, and why."""

    since_ns: int
    needed_ns: int  # how long it must be refused from then on to count as stuck
    last: Hold | None  # the one whose end that is


def find(case: Case) -> Iterator[Finding]:
    healed = [fault.healed_ns for fault in case.history.faults]
    if None in healed:
        return
    healed_ns = max((time_ns for time_ns in healed if time_ns is not None), default=0)
    for key, acquires in case.acquires_by_key.items():
        before_the_log = case.terms.partial and key not in case.holds_by_key
        if before_the_log or not _refused(acquires):
            continue  # somewhere a client may hold it that has not been heard of
        free = _free(case.terms, acquires, case.holds_by_key.get(key, []), healed_ns)
        if free is not None:
            later = [acquire for acquire in acquires if acquire.start_ns > free.since_ns]
            if _refuses_for_ever(later, free.needed_ns):
                yield _finding(case, free, later)


def _refused(acquires: list[Operation]) -> bool:
    """The last of them were. A lock that works is done here."""
    answered = [acquire for acquire in acquires if acquire.answer is not None]
    last = answered[-FEWEST_REFUSED:]
    return len(last) == FEWEST_REFUSED and all(acquire.failed for acquire in last)


# --- from when on it must be free ----------------------------------------------------------------


def _free(
    terms: Terms, acquires: list[Operation], holds: list[Hold], healed_ns: int
) -> _Free | None:
    """None: not known, since a client may hold it, or be granted it, without an end."""
    lease_ns = _longest_lease_ns(acquires, holds, terms)
    unknown = [acquire for acquire in acquires if acquire.unknown]
    if unknown and not lease_ns:
        return None
    since_ns = max((o.last_ns + LEASES * lease_ns for o in unknown), default=healed_ns)
    since_ns, last = max(since_ns, healed_ns), None
    for hold in holds:
        gone_ns = _gone_ns(terms, hold, lease_ns)
        if gone_ns is None:
            return None
        if gone_ns >= since_ns:
            since_ns, last = gone_ns, hold
    # Each that was never answered may still be granted, and lapse, once.
    late_ns = sum(acquire.answer is None for acquire in unknown) * lease_ns
    return _Free(since_ns, max(SHORTEST_NS, LEASES * lease_ns) + late_ns, last)


def _longest_lease_ns(acquires: list[Operation], holds: list[Hold], terms: Terms) -> int:
    asked = [acquire.invoke.ttl_ms for acquire in acquires]
    asked += [renewal.invoke.ttl_ms for hold in holds for renewal in hold.renewals]
    return max((ttl_ms or 0 for ttl_ms in (*asked, terms.ttl_ms)), default=0) * NS_PER_MS


def _gone_ns(terms: Terms, hold: Hold, lease_ns: int) -> int | None:
    """When the hold had certainly ended, whatever its client believed; None: not known."""
    release = hold.release
    if release is not None and gave_back(release, terms):
        return release.end_ns
    if not lease_ns:
        return None
    # A client that never lets go may renew all the while. Ours record their renewals.
    if hold.ending is Ending.LAST_SEEN and not (terms.backend or hold.renewals):
        return None
    granted = (hold.acquire, *hold.renewals)
    heard_ns = max(hold.end_ns, *(operation.last_ns for operation in granted))
    return heard_ns + LEASES * lease_ns


# --- and that it is not --------------------------------------------------------------------------


def _refuses_for_ever(acquires: list[Operation], needed_ns: int) -> bool:
    """Again and again, for long enough, by the lock's own word; some of them to a client that asked
    alone, since clients that ask at once may keep each other from a majority."""
    answered = [acquire for acquire in acquires if acquire.answer is not None]
    if not answered or not all(acquire.failed for acquire in answered):
        return False
    refused = [acquire for acquire in answered if acquire.refusal is Refusal.HELD]
    if _one_after_the_other(refused) < FEWEST_REFUSED:
        return False
    if max(acquire.last_ns for acquire in refused) - refused[0].start_ns < needed_ns:
        return False
    alone = [acquire for acquire in _undisturbed(acquires) if acquire.refusal is Refusal.HELD]
    waited = [acquire for acquire in refused if acquire.last_ns - acquire.start_ns > needed_ns]
    return len(alone) + len(waited) >= FEWEST_UNDISTURBED


def _one_after_the_other(refused: list[Operation]) -> int:
    number, free_ns = 0, -1
    for acquire in sorted(refused, key=lambda acquire: acquire.last_ns):
        if acquire.start_ns > free_ns:
            number, free_ns = number + 1, acquire.last_ns
    return number


def _undisturbed(acquires: list[Operation]) -> Iterator[Operation]:
    """Those during which no other client asked; one without an answer may have arrived."""
    busy_until_ns = -1
    for number, acquire in enumerate(acquires):
        following = acquires[number + 1 : number + 2]
        alone = acquire.start_ns > busy_until_ns
        if alone and all(other.start_ns > acquire.last_ns for other in following):
            yield acquire
        busy_until_ns = max(busy_until_ns, acquire.last_ns)


def _finding(case: Case, free: _Free, asked: list[Operation]) -> Finding:
    refused = [acquire for acquire in asked if acquire.refusal is Refusal.HELD]
    first, since_ns = refused[0], free.since_ns
    end_ns = max(acquire.last_ns for acquire in refused)
    blame = _blame(case, free, end_ns)
    return Finding(
        code=Code.STUCK,
        key=first.key,
        time_ns=since_ns,
        effect=CHECK.effect(case.terms, blame),
        holds=() if free.last is None else (free.last,),
        operations=(*refused[: FEWEST_REFUSED - 1], refused[-1]),
        length_ns=end_ns - since_ns,
        blame=blame,
        reasons=(Reason(REFUSED, number=len(asked)),),
    )


def _blame(case: Case, free: _Free, end_ns: int) -> Blame:
    since_ns, last = free.since_ns, free.last
    stalled = clipped(case.history.stalls, since_ns, end_ns)
    if end_ns - since_ns - total_ns(stalled) < free.needed_ns:
        return Blame(Culprit.MACHINE, end_ns - since_ns, None, stalls=stalled)
    began_ns = 0 if last is None else last.acquire.start_ns
    fault = case.attribution.fault_anywhere(began_ns, since_ns)
    return Blame(Culprit.SERVICE, end_ns - since_ns, None, fault)


def _may_be_stuck(scan: Scan) -> bool:
    """Refusals after the last grant of a key: a few there are at the end of any history."""
    table = scan.table
    acquires = np.flatnonzero(table.f == Op.ACQUIRE)
    granted = acquires[table.outcome[acquires] == Outcome.OK]
    last = np.full(int(table.key.max(initial=0)) + 2, -1, np.int64)
    last[table.key[granted] + 1] = granted
    refused = acquires[table.outcome[acquires] == Outcome.FAIL]
    after = refused[refused > last[table.key[refused] + 1]]
    tried = np.bincount(table.key[after] + 1) if len(after) else np.zeros(1)
    return bool((tried >= FEWEST_REFUSED).any())


def _title(finding: Finding) -> str:
    tried = names(sorted({o.node for o in finding.operations}), NAMED_AT_MOST)
    key = lock_name(finding.key)
    named = f"{key[:1].upper()}{key[1:]}" if not finding.key else key
    return f"{named} could not be acquired any more by {tried}"


def _did(finding: Finding) -> str:
    key = lock_name(finding.key)
    return f"nobody had a right to {key} any more, and still it granted it to nobody"


WORDS = Words(
    one="stuck lock",
    many="stuck locks",
    precedence=4,
    title=_title,
    last=lambda f: ("lock server", f"granted {lock_name(f.key)} to nobody from here on"),
    did=_did,
    cure=(
        "What a client leaves behind must end without it: a lease or a session for the lock, "
        "for its place in the queue, and for whatever the servers remember of both. Look at "
        "what is still stored for this lock."
    ),
)
CHECK = Check(
    code=Code.STUCK,
    meaning="after the faults healed and every lease has run out, the lock cannot be acquired",
    explanation="""\
All clients have released the lock, or held it longer ago than twice its lease, and no fault is
active any more; but every request for it is refused, until the history ends. A lock without a time
to live whose holder died, a queue whose first place belongs to a client that is gone, a key that a
server's clock keeps alive: no client gets in again until an operator removes it.

It is reported where at least five attempts, one after the other, were refused after that moment, by
the lock's own answer (a server that cannot be reached gives none), for at least a second and two
leases; two of them while no other client asked, since clients that ask at once may keep each other
from a majority. An acquire whose outcome is unknown counts as a hold. Where that cannot be decided,
it is not reported: a fault that was never healed, a holder without a lease that never released, or
one, in a history that shows no renewals, that may renew.

Runs with faults go on when the last one has been healed, until each lock was granted again, or for
long enough to tell.

The history must have all users of the lock: a holder that is missing in it would be taken for a
lock that is stuck. Time in which the machine stalled is not counted.""",
    find=find,
    words=WORDS,
    screen=Screen("its lock may be stuck at the end", _may_be_stuck),
    despite_guards=True,
)
