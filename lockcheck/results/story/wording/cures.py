"""What would prevent it: what fits the cause, and what guards the data whatever the cause."""

from __future__ import annotations

from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Verdict
from lockcheck.checker.judges.stale_read import CURE
from lockcheck.history import Effect, History, Terms
from lockcheck.history.event import TRANSACTION
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.wording.acts import FAILOVER
from lockcheck.results.story.wording.blame import separate_causes
from lockcheck.results.story.wording.codes import about_a_lock, by_evidence, the_anomalies, words_of
from lockcheck.words import lock_server, upper_first

_OF_A_FAILOVER = (
    "A grant must be on the replicas before it is answered: asynchronous replication forgets locks "
    "at failover. Redis can wait for them (WAIT), which makes it rarer; consensus rules it out."
)
_SERVICE_CURES: dict[Effect | None, str] = {
    Effect.SKEWS: (
        "Leases must not hang on a clock that can jump: slew instead of stepping it, and "
        "choose a lock that counts leases by consensus or by a monotonic clock."
    ),
    Effect.ENDS: (
        "A server must not come back without the locks that it granted: persist each grant before "
        "it is answered, or keep a restarted server out for longer than the longest lease."
    ),
    Effect.CUTS: (
        "A server cut off from the majority must not grant or forget locks: choose a lock "
        "with consensus, and check that its quorum is configured."
    ),
    Effect.STARVES: (
        "A server that cannot write down what it grants must not grant it: choose a lock that "
        "answers after the write, and ends, or refuses, where that fails."
    ),
}
# Of a holder that outlived its lease.
_HOLDER_CURES = {
    Effect.STOPS: (
        "No lock server can prevent this: a client that does not run cannot notice that its lease "
        "has run out. What helps is {guard}. A longer lease only makes it rarer."
    ),
    Effect.ENDS: (
        "No lock server can prevent this: what a client sent before its end may still arrive when "
        "its lease has run out. What helps is {guard}. A longer lease only makes it rarer."
    ),
    Effect.CUTS: (
        "The client ran all the while, so it could have known, although no answer reached it: it "
        "must count the validity of its lease by its own monotonic clock, from before it asked, "
        "renew in good time, and stop when the lease is over and no renewal has been answered. "
        "Against what is under way by then there is {guard}."
    ),
    Effect.SKEWS: (
        "The client ran, by a clock that was wrong: it must count the validity of its lease by a "
        "monotonic clock, which nobody sets, from before it asked. Whatever the clocks say, what "
        "helps is {guard}."
    ),
    Effect.SLOWS: (
        "The client ran, only slower: it must look at its own monotonic clock before each step, "
        "and stop when the rest of its lease is too short for it. A longer lease, or one renewed "
        "meanwhile, makes it rarer. What helps is {guard}."
    ),
    Effect.STARVES: (
        "Where its own disk takes no more writes a client may hang, or end, in the middle of its "
        "work, and go on when its lease has run out. What helps is {guard}."
    ),
}
_EXCUSED_CURES = {
    Culprit.MACHINE: (
        "The lock needs no change. Run again on a quieter machine, or with a longer lease (--ttl) "
        "so that a short stall does not reach its end."
    ),
    Culprit.CLOCKS: (
        "Nothing, if clocks explain it. A client is on the safe side that stops a little before "
        "its lease is over: by a hundredth of it, say."
    ),
}
_CURES = {
    Culprit.CLIENT: (
        "Fix the client: it must read under the lock, and write only while it holds it. What also "
        "helps is {guard}."
    ),
    Culprit.STORAGE: CURE,
    Culprit.UNKNOWN: (
        "Record when a lease begins (the validity that the lock reports, its renewals): then it "
        "shows whose fault it was. What helps in any case is {guard}."
    ),
}
_OF_A_DEFECT = (
    "That is a defect of the lock, and not of its use: show this page to its maintainers, or use "
    "another lock."
)
_ANY_HOLDER = (
    "No lock server can prevent this: it cannot stop a client whose lease has run out. What "
    "helps is {guard}. A longer lease only makes it rarer."
)


def prevention_of(history: History, incident: Incident) -> str:
    parts = [_prevention(history, incident, _guard_advice(history, incident))]
    for finding, number in separate_causes(incident):
        cure = _cure(finding, "")
        against = the_anomalies(finding.code, number)
        parts.append(f"Against {against}: {cure[:1].lower()}{cure[1:]}")
    return " ".join(parts)


def _cure(finding: Finding, guard: str) -> str:
    """`guard`: what would guard the data, in the words that fit the run; empty: there already."""
    words = words_of(finding)
    if not about_a_lock(finding):
        return words.object_cure
    protects = f" What protects the data is {guard}." if guard else ""
    return words.cure.format(guard=protects) or f"See `lockcheck explain {finding.code}`.{protects}"


def _prevention(history: History, incident: Incident, advice: str) -> str:
    blame, guard = incident.main.blame, history.terms.guard
    guarded = guard in {"fence", "cas"}
    if blame.who in _EXCUSED_CURES:
        return _EXCUSED_CURES[blame.who]
    own = by_evidence(incident.main) and blame.release is None
    if own and not incident.foreign_releases:
        return _cure(incident.main, advice)
    if guarded and incident.effect is Verdict.VIOLATION:
        return (
            f"The storage was to refuse this (--guard {guard}) and accepted it: look at how it "
            "compares tokens or versions, and at whether each write carries its own."
        )
    if guard == TRANSACTION and blame.who is Culprit.HOLDER:
        return (
            "Nothing more is needed: what a late holder writes is rolled back with its transaction."
        )
    if guarded and blame.who is Culprit.HOLDER:
        return (
            "Nothing more is needed: no lease can keep a client from outliving it, and the guard "
            f"at the storage (--guard {guard}) is what keeps the data right."
        )
    return _lock_cure(history, incident, advice)


def _lock_cure(history: History, incident: Incident, guard: str) -> str:
    blame = incident.main.blame
    if incident.foreign_releases or blame.release is not None:
        return _release_cure(incident, guard)
    if blame.who in _CURES:
        return _CURES[blame.who].format(guard=guard)
    if blame.ended_by is not None:
        return (
            f"A lock that lasts as long as a {history.terms.ends_with} is free as soon as that "
            "ends, and a holder that is cut off does not learn of it. Choose one that outlives its "
            f"server (a lease that is stored, or consensus). What helps in any case is {guard}."
        )
    if blame.who is Culprit.SERVICE:
        cure = _service_cure(history.terms, blame)
        return f"{cure} Whatever the lock does, data stay safe behind {guard}."
    return _holder_cure(blame, guard)


def _holder_cure(blame: Blame, guard: str) -> str:
    if blame.fault is None:
        return (
            "No lock with a lease can prevent this alone: the work took longer than the lease. A "
            f"longer lease, or one renewed meanwhile, makes it rarer. What helps is {guard}."
        )
    cures = _HOLDER_CURES.get(blame.fault.effect) if blame.fault.effect else None
    return (cures or _ANY_HOLDER).format(guard=guard)


def _release_cure(incident: Incident, guard: str) -> str:
    """Where a holder was late first, what it did is the cause, and its release came after."""
    cure = (
        "store a random value of your own with the lock, and release it only while the value is "
        "still yours, in one atomic step, as --backend redis does."
    )
    if not incident.late:
        return f"Compare and delete: {cure}"
    late = _holder_cure(incident.late[0].blame, guard)
    return (
        f"{late} Compare and delete, too, so that no late holder frees the next one's lock: {cure}"
    )


def _guard_advice(history: History, incident: Incident) -> str:
    ours, stored = bool(history.terms.backend), history.terms.stores
    where = "the storage" if ours and stored else "whatever the lock protects"
    if incident.of(Code.TOKEN_REGRESSION):  # a guard that checks them is no help then
        option = " (--guard cas)" if ours and stored else ""
        return f"a guard at {where}: compare-and-set on the version{option}"
    if not (ours and stored):
        one = history.terms.permits <= 1  # else a register is nothing that it protects
        see = " (see both with --workload register)" if ours and one else ""
        return (
            f"a guard at {where}: a fencing token that it checks, or compare-and-set on its "
            f"version{see}"
        )
    tokens = any(hold.token is not None for hold in history.holds)
    with_tokens = "" if tokens else ", for a lock that gives tokens, as redis-fenced does"
    return (
        f"a guard at the storage: a fencing token that it checks (--guard fence{with_tokens}), "
        "or compare-and-set on the version (--guard cas)"
    )


def _service_cure(terms: Terms, blame: Blame) -> str:
    if terms.accused:
        return (
            f"{upper_first(lock_server(terms))} must not let a client in while another one holds "
            "the lock. Test what it stands on alone, too: where that holds, the rest is to blame."
        )
    if blame.fault is not None and blame.fault.name == FAILOVER:
        return _OF_A_FAILOVER
    effect = blame.fault.effect if blame.fault else None
    if effect in _SERVICE_CURES:
        return _SERVICE_CURES[effect]
    return _OF_A_DEFECT
