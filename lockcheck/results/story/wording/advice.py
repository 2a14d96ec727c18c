"""What to do, in at most three steps: what fits the cause first, then what guards the data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lockcheck.checker.finding import Code, Culprit, Verdict
from lockcheck.history import Effect, FaultSpan, History, Terms
from lockcheck.history.event import TRANSACTION
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.wording.acts import FAILOVER
from lockcheck.results.story.wording.codes import about_a_lock, by_evidence, words_of

MOST = 3
COMPARE = "Compare and delete: release a lock only while its value is still yours, in one step."
OF_A_SERVICE = {
    Effect.SKEWS: "Slew clocks instead of stepping them, or count leases by a monotonic clock.",
    Effect.ENDS: "Keep a restarted server out for as long as a lease, or persist each grant first.",
    Effect.CUTS: "Use a lock that needs a majority for each grant.",
    Effect.STARVES: "Use a lock that answers only after it has written the grant down.",
}
OF_A_FAILOVER = "Wait until replicas have the grant (Redis: WAIT), or use a lock with consensus."
OF_A_DEFECT = "Show this page to the lock's maintainers, or use another lock."
OF_A_HOLDER = {
    Effect.CUTS: "Count the lease by the client's own monotonic clock, and stop when it is over.",
    Effect.SKEWS: "Count the lease by a monotonic clock, which cannot be set.",
    Effect.SLOWS: "Look at what is left of the lease before each step, and stop in time.",
}
TOO_LONG = "Make the lease longer than the work, or renew it meanwhile."
OF_A_LIBRARY = "Try the library's newest version, and show its maintainers this page."
READ_FIRST = "Read under the lock, and write only while it is held."
GUARD_FAILED = "Look at how the storage compares: it accepted what it was to refuse."
REFUSE = "Have the storage refuse a write once the lock has gone to another client"
GUARDED = f"{REFUSE}: by a fencing token (test it: --guard fence) or compare-and-set (--guard cas)."
CAS = f"{REFUSE}: by compare-and-set on the version (test it: --guard cas)."
ANY_GUARD = f"{REFUSE}: by a fencing token, or by compare-and-set."


def advice_of(history: History, incident: Incident) -> tuple[str, ...]:
    """Empty: nothing needs to be done."""
    if incident.main.blame.who in (Culprit.MACHINE, Culprit.CLOCKS):
        return ()
    if incident.effect is not Verdict.VIOLATION:
        return ()
    steps = dict.fromkeys((*_direct(history, incident), *_guards(history, incident)))
    return tuple(islice(steps, MOST))


def _direct(history: History, incident: Incident) -> Iterator[str]:
    main, terms = incident.main, history.terms
    blame = main.blame
    if incident.foreign_releases or blame.release is not None:
        yield COMPARE
        if any(late.blame.fault is None for late in incident.late):
            yield TOO_LONG
    elif by_evidence(main):
        words = words_of(main)
        cure = words.cure.format(guard="") if about_a_lock(main) else words.object_cure
        yield from (f"{each}." for each in cure.removesuffix(".").split(". ")[:1] if each)
    elif blame.who is Culprit.SERVICE:
        yield from _of_the_service(terms, blame.fault)
    elif blame.who is Culprit.HOLDER:
        if blame.fault is None and blame.ended_by is None:
            yield TOO_LONG
        elif blame.fault is not None and blame.fault.effect in OF_A_HOLDER:
            yield OF_A_HOLDER[blame.fault.effect]
    elif blame.who is Culprit.CLIENT:
        yield READ_FIRST


def _of_the_service(terms: Terms, fault: FaultSpan | None) -> Iterator[str]:
    if terms.accused and (terms.instead or fault is None):
        yield terms.instead or OF_A_LIBRARY
    if fault is None and not terms.accused:
        yield OF_A_DEFECT
    elif fault is not None and fault.name == FAILOVER:
        yield OF_A_FAILOVER
    elif fault is not None and fault.effect in OF_A_SERVICE:
        yield OF_A_SERVICE[fault.effect]


def _guards(history: History, incident: Incident) -> Iterator[str]:
    terms = history.terms
    if terms.guard == TRANSACTION or not terms.excludes or not about_a_lock(incident.main):
        return
    if terms.guard in ("fence", "cas"):
        yield GUARD_FAILED
    elif not (terms.backend and terms.stores):
        yield ANY_GUARD
    else:
        yield CAS if incident.of(Code.TOKEN_REGRESSION) else GUARDED
