"""After the faults healed and every lease has run out, the lock cannot be acquired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.evidence.blame import Attribution
from lockcheck.checker.evidence.guard import effect_of
from lockcheck.checker.evidence.stalls import clipped, total_ns
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Reason, Rule
from lockcheck.history import Ending, F, Hold, Operation, Refusal, Stall, Terms
from lockcheck.history.event import NS_PER_MS

FEWEST_REFUSED = 5  # one after the other
FEWEST_UNDISTURBED = 2
SHORTEST_NS = 1_000 * NS_PER_MS
LEASES = 2  # so often a lease is waited for: servers count it by clocks of their own


@dataclass(frozen=True, slots=True)
class _Free:
    """From when on a lock must be free, and what says so."""

    since_ns: int
    needed_ns: int  # how long it must be refused then before that says something
    last: Hold | None  # the one whose end that is


def find(case: Case) -> Iterator[Finding]:
    healed = [fault.healed_ns for fault in case.history.faults]
    if None in healed:
        return
    healed_ns = max((time_ns for time_ns in healed if time_ns is not None), default=0)
    asked = {key: acquires for key, acquires in _asked_by_key(case) if _refused(acquires)}
    for key, acquires in asked.items():
        free = _free(case.terms, acquires, case.holds_by_key.get(key, []), healed_ns)
        if free is not None:
            later = [acquire for acquire in acquires if acquire.start_ns > free.since_ns]
            if _refuses_for_ever(later, free.needed_ns):
                yield _finding(case, free, later)


def _asked_by_key(case: Case) -> Iterable[tuple[str, list[Operation]]]:
    asked: dict[str, list[Operation]] = {}
    for operation in case.operations:
        if operation.f == F.ACQUIRE:
            asked.setdefault(operation.key, []).append(operation)
    return asked.items()


def _refused(acquires: list[Operation]) -> bool:
    """The last of them were. A lock that works is done here."""
    answered = [acquire for acquire in acquires if acquire.answer is not None]
    last = answered[-FEWEST_REFUSED:]
    return len(last) == FEWEST_REFUSED and all(acquire.failed for acquire in last)


# --- from when on it must be free ----------------------------------------------------------------


def _free(
    terms: Terms, acquires: list[Operation], holds: list[Hold], healed_ns: int
) -> _Free | None:
    """None: nobody knows, since somebody may hold it, or be granted it, without an end."""
    lease_ns = _longest_lease_ns(acquires, holds, terms)
    unknown = [acquire for acquire in acquires if acquire.unknown]
    if unknown and not lease_ns:
        return None
    since_ns = max((_last_ns(o) + LEASES * lease_ns for o in unknown), default=healed_ns)
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
    """By when it was over, whoever believed what."""
    release = hold.release
    if release is not None and release.ok:
        return release.end_ns
    if not lease_ns:
        return None
    # A client that never lets go may renew all the while. Ours say so when they do.
    if hold.ending is Ending.LAST_SEEN and not (terms.backend or hold.renewals):
        return None
    granted = (hold.acquire, *hold.renewals)
    heard_ns = max(hold.end_ns, *(_last_ns(operation) for operation in granted))
    return heard_ns + LEASES * lease_ns


def _last_ns(operation: Operation) -> int:
    """When it was heard of last: it had taken effect by then, or takes it once, late."""
    return operation.start_ns if operation.answer is None else operation.answer.time


# --- and that it is not --------------------------------------------------------------------------


def _refuses_for_ever(acquires: list[Operation], needed_ns: int) -> bool:
    """Again and again, for long enough, by the lock's own word; and to one who asked alone, since
    those who ask at once may keep each other from a majority."""
    answered = [acquire for acquire in acquires if acquire.answer is not None]
    if not answered or not all(acquire.failed for acquire in answered):
        return False
    refused = [acquire for acquire in answered if acquire.refusal is Refusal.HELD]
    if _one_after_the_other(refused) < FEWEST_REFUSED or _lasted_ns(refused) < needed_ns:
        return False
    alone = [acquire for acquire in _undisturbed(acquires) if acquire.refusal is Refusal.HELD]
    waited = [acquire for acquire in refused if _last_ns(acquire) - acquire.start_ns > needed_ns]
    return len(alone) + len(waited) >= FEWEST_UNDISTURBED


def _lasted_ns(refused: list[Operation]) -> int:
    return _last_ns(max(refused, key=_last_ns)) - refused[0].start_ns if refused else 0


def _one_after_the_other(refused: list[Operation]) -> int:
    number, free_ns = 0, -1
    for acquire in sorted(refused, key=_last_ns):
        if acquire.start_ns > free_ns:
            number, free_ns = number + 1, _last_ns(acquire)
    return number


def _undisturbed(acquires: list[Operation]) -> Iterator[Operation]:
    """Those that nobody else asked beside; one that was never answered may have been heard."""
    busy_until_ns = -1
    for number, acquire in enumerate(acquires):
        following = acquires[number + 1 : number + 2]
        alone = acquire.start_ns > busy_until_ns
        if alone and all(other.start_ns > _last_ns(acquire) for other in following):
            yield acquire
        busy_until_ns = max(busy_until_ns, _last_ns(acquire))


def _finding(case: Case, free: _Free, asked: list[Operation]) -> Finding:
    refused = [acquire for acquire in asked if acquire.refusal is Refusal.HELD]
    first, since_ns = refused[0], free.since_ns
    end_ns = max(_last_ns(acquire) for acquire in refused)
    blame = _blame(case.history.stalls, case.attribution, free, end_ns)
    return Finding(
        code=Code.STUCK,
        key=first.key,
        time_ns=since_ns,
        effect=effect_of(case.terms, Code.STUCK, blame),
        holds=() if free.last is None else (free.last,),
        operations=(*refused[: FEWEST_REFUSED - 1], refused[-1]),
        length_ns=end_ns - since_ns,
        blame=blame,
        reasons=(Reason(Rule.REFUSED, number=len(asked)),),
    )


def _blame(stalls: Iterable[Stall], attribution: Attribution, free: _Free, end_ns: int) -> Blame:
    since_ns, last = free.since_ns, free.last
    stalled = clipped(stalls, since_ns, end_ns)
    if end_ns - since_ns - total_ns(stalled) < free.needed_ns:
        return Blame(Culprit.MACHINE, end_ns - since_ns, None, stalls=stalled)
    began_ns = 0 if last is None else last.acquire.start_ns
    fault = attribution.fault_anywhere(began_ns, since_ns)
    return Blame(Culprit.SERVICE, end_ns - since_ns, None, fault)


CHECK = Check(
    code=Code.STUCK,
    meaning="after the faults healed and every lease has run out, the lock cannot be acquired",
    explanation="""\
Everybody has released the lock, or held it longer ago than twice its lease, and no fault is active
any more; but whoever asks for it is refused, until the history ends. A lock without a time to live
whose holder died, a queue whose first place belongs to nobody, a key that a server's clock keeps
alive: nobody gets in again without somebody who removes it by hand.

It is reported where at least five attempts, one after the other, were refused after that moment, by
the lock's own word (a server that cannot be reached says nothing of the lock), for at least a
second and two leases; two of them with nobody else asking beside, since those who ask at once may
keep each other from a majority. An acquire of which nobody knows whether it was granted counts as a
hold. Where that cannot be told, it is not reported: a fault that was never healed, a holder without
a lease that never released, or one, in a history that shows no renewals, that may renew.

Runs with faults go on when the last one has been healed, until each lock was granted again, or for
long enough to tell.

The history must know all who use the lock: a holder that is missing in it would be taken for a lock
that is stuck. Time in which the machine stalled is not counted.""",
    find=find,
)
