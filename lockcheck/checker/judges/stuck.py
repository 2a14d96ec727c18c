"""After the faults healed and every lease has run out, the lock cannot be acquired."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import Screen
from lockcheck.checker.columns.subject import ColumnSubject
from lockcheck.checker.evidence.promise import lease_ns
from lockcheck.checker.evidence.stalls import clipped, total_ns
from lockcheck.checker.evidence.vacancies import FEWEST_REFUSED, LEASES, SHORTEST_NS, Vacancy
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Reason, Verdict
from lockcheck.checker.wording import NAMED_AT_MOST, Words
from lockcheck.history import Operation
from lockcheck.history.ordering import BEFORE_ALL, latest_before, order_by
from lockcheck.history.scan import Scan
from lockcheck.history.table import NEVER, Ints, Op, Outcome
from lockcheck.words import lock_name, names

REFUSED = (
    "By then every hold had been released, or its lease had run out, and every fault was"
    " healed. {number} requests were refused from then on, for {long}, up to the end."
)


def find(case: Case) -> Iterator[Finding]:
    for key in case.in_vain:
        free = for_ever(case, key)
        if free is not None:
            yield finding(case, CHECK, free, REFUSED, maybe_held=_may_be_held(case, free))


def for_ever(case: Case, key: str) -> Vacancy | None:
    """From when on the lock was refused up to the end, if it was."""
    free = (vacancy for vacancy in case.in_vain[key] if vacancy.for_ever)
    return next(free, None) if _refused(case.acquires_by_key[key]) else None


def _refused(acquires: list[Operation]) -> bool:
    """The last of them were. A lock that works is done here."""
    answered = [acquire for acquire in acquires if acquire.answer is not None]
    last = answered[-FEWEST_REFUSED:]
    return len(last) == FEWEST_REFUSED and all(acquire.failed for acquire in last)


def finding(case: Case, check: Check, free: Vacancy, sentence: str, *, maybe_held: bool) -> Finding:
    refused = free.refused or free.failed
    blame = _blame(case, free)
    return Finding(
        code=check.code,
        key=refused[0].key,
        time_ns=free.since_ns,
        effect=Verdict.UNKNOWN if maybe_held else check.effect(case.terms, blame),
        holds=() if free.last is None else (free.last,),
        operations=(*refused[: FEWEST_REFUSED - 1], refused[-1]),
        length_ns=free.end_ns - free.since_ns,
        blame=blame,
        reasons=(Reason(sentence, number=len(free.asked)),),
    )


def _may_be_held(case: Case, free: Vacancy) -> bool:
    """By a client of which no row was seen from then on: most programs write one when an operation
    is done, and it may have been granted the lock once more."""
    if not case.terms.partial:
        return False
    silent = [time_ns for time_ns in case.last_heard_ns.values() if time_ns <= free.since_ns]
    if not free.lease_ns:
        return bool(silent)
    lapsed_ns = max(silent, default=0) + LEASES * free.lease_ns
    return lapsed_ns + free.needed_ns > free.end_ns


def _blame(case: Case, free: Vacancy) -> Blame:
    since_ns, end_ns, last = free.since_ns, free.end_ns, free.last
    stalled = clipped(case.history.stalls, since_ns, end_ns)
    if end_ns - since_ns - total_ns(stalled) < free.needed_ns:
        return Blame(Culprit.MACHINE, end_ns - since_ns, None, stalls=stalled)
    began_ns = 0 if last is None else last.acquire.start_ns
    fault = case.attribution.fault_anywhere(began_ns, since_ns)
    return Blame(Culprit.SERVICE, end_ns - since_ns, None, fault)


def _may_be_refused_while_free(scan: Scan) -> bool:
    """Several times in a row, and for long, when the lock may have been free."""
    table = scan.table
    rows = np.flatnonzero(table.f == Op.ACQUIRE)
    rows = rows[order_by(table.key[rows], table.start[rows])]
    key, refused = table.key[rows], table.outcome[rows] == Outcome.FAIL
    if np.count_nonzero(refused) < FEWEST_REFUSED:
        return False
    taken_until = latest_before(key, np.where(refused, BEFORE_ALL, _gone_ns(scan)[rows]))
    free = refused & (table.start[rows] > taken_until)
    begins = ~refused | (np.append(-1, key[:-1]) != key)
    asked, stretch = rows[free], np.cumsum(begins)[free]
    firsts = np.flatnonzero(np.append(-1, stretch[:-1]) != stretch)
    past = np.append(firsts, len(asked))[1:]
    long = table.end[asked[past - 1]] - table.start[asked[firsts]] >= SHORTEST_NS
    return bool((long & (past - firsts >= FEWEST_REFUSED)).any())


def _gone_ns(scan: Scan) -> Ints:
    """Of granted and unconfirmed acquires: the earliest time at which what they began may count as
    over."""
    table, holds, lease = scan.table, scan.holds, lease_ns(scan.table, scan.terms.ttl_ms)
    known = not (ColumnSubject(scan).losses or scan.terms.check_validity)
    heard, own = holds.end if known else holds.start, lease[holds.granted]
    lapsed = np.where(own > 0, heard + LEASES * own, NEVER)
    release = np.maximum(holds.ended, 0)
    given_back = (holds.ended >= 0) & (table.f[release] == Op.RELEASE)
    given_back &= table.outcome[release] == Outcome.OK
    gone = np.where(lease > 0, table.start + LEASES * lease, NEVER)
    gone[holds.granted] = np.where(given_back, table.end[release], lapsed)
    return gone


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
    kept="locks become free again",
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
SCREEN = Screen("its lock may have been refused while it was free", _may_be_refused_while_free)
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
    screen=SCREEN,
    despite_guards=True,
)
