"""For a while the lock was refused to all who asked, although no client can have held it."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.evidence.vacancies import Vacancy
from lockcheck.checker.finding import Code, Finding
from lockcheck.checker.judges import stuck
from lockcheck.checker.wording import NAMED_AT_MOST, Words
from lockcheck.history import Effect
from lockcheck.words import lock_name, names

REFUSED = (
    "By then every hold had been released, or its lease had run out, and no fault was active."
    " {number} requests were refused from then on, for {long}."
)
UNSERVED = (
    "By then every hold had been released, or its lease had run out, and a majority of the lock's"
    " servers was up. {number} requests failed from then on, for {long}."
)


def find(case: Case) -> Iterator[Finding]:
    for key, in_vain in case.in_vain.items():
        to_the_end = stuck.for_ever(case, key)
        found = [(free, REFUSED) for free in in_vain if free is not to_the_end]
        found += [(free, UNSERVED) for free in case.unserved[key] if not _has(free, in_vain)]
        for free, sentence in sorted(found, key=lambda each: each[0].since_ns):
            if not _set_by_a_wrong_clock(case, free):
                maybe_held = case.terms.partial  # by a client that is missing in it
                yield stuck.finding(case, CHECK, free, sentence, maybe_held=maybe_held)


def _has(free: Vacancy, others: list[Vacancy]) -> bool:
    return any(free.since_ns <= other.since_ns <= free.end_ns for other in others)


def _set_by_a_wrong_clock(case: Case, free: Vacancy) -> bool:
    """Whether its last known hold began before a server's clock was set right again: what that
    server stored with a wrong clock may last longer than a lease."""
    since_ns = -1 if free.last is None else free.last.acquire.start_ns
    return any(
        fault.effect in (Effect.SKEWS, None) and since_ns <= (fault.healed_ns or 0) <= free.since_ns
        for fault in case.history.faults
    )


def _title(finding: Finding) -> str:
    tried = names(sorted({o.node for o in finding.operations}), NAMED_AT_MOST)
    return f"{lock_name(finding.key)} was refused to {tried} while it was free"


WORDS = Words(
    one="denied lock",
    many="denied locks",
    kept="free locks are granted",
    precedence=2,
    title=_title,
    last=lambda f: ("lock server", f"refused {lock_name(f.key)} to all who asked"),
    did=lambda f: f"it refused {lock_name(f.key)} although no client had a right to it any more",
    cure=(
        "What a client leaves behind must end with its lease: an entry without a time to live, or "
        "with a longer one, keeps all others out. Look at what is stored for this lock, and who "
        "removes it."
    ),
)
CHECK = Check(
    code=Code.DENIED,
    meaning="for a while the lock was refused to all, although no client can have held it",
    explanation="""\
All clients had released the lock, or held it longer ago than twice its lease, and no fault was
active; but every request for it was refused as if it were held, until at last one was granted.
An entry that a client left behind, and that only its time to live removes; a release that was
confirmed and removed nothing; a place in the queue of a client that is gone.

It is reported as `stuck` is: where at least five attempts, one after the other, were refused by the
lock's own answer, for at least a second and two leases; two of them while no other client asked. A
request whose outcome is unknown counts as a hold. What a server stored while its clock was wrong
may last longer: that is not reported.

In a run it is reported, too, if a majority of the lock's servers was up for twenty seconds and two
leases, the same one all the while, and clients that no fault concerned got nothing but refusals,
for want of a server, too.

The history must have all users of the lock. Of a production log that is not known, so there it is
unknown, with that as its reason.""",
    find=find,
    words=WORDS,
    screen=stuck.SCREEN,
    despite_guards=True,
)
