"""Whose fault it was, and what would prevent it."""

from __future__ import annotations

from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Verdict
from lockcheck.history import History
from lockcheck.history.event import TRANSACTION
from lockcheck.results.story import remedies
from lockcheck.results.story.anomalies import the_anomalies
from lockcheck.results.story.effects import holder_cure, service_cure
from lockcheck.results.story.incidents import TOLD_BY_EVIDENCE, TOLD_BY_HOLDS, Incident, taken_by
from lockcheck.results.story.titles import also_taken
from lockcheck.results.story.words import amount, fault_name, node_of, plain, span, upper_first


def blame_of(incident: Incident) -> str:
    parts = [_culprit(incident), _chain(incident), _active_fault(incident.main)]
    faults = [incident.main.blame.fault]
    for finding, number in remedies.matters_of_their_own(incident):
        own = "is a matter of its own" if number == 1 else "are a matter of their own"
        what = upper_first(the_anomalies(finding.code, number))
        known = finding.blame.fault in faults
        faults.append(finding.blame.fault)
        parts += [f"{what} {own}. {remedies.culprit(finding)}"]
        parts += [] if known else [_active_fault(finding)]
    return " ".join(part for part in parts if part)


def _culprit(incident: Incident) -> str:
    finding = incident.main
    blame, by = finding.blame, span(finding.blame.by_ns)
    earlier = node_of(finding.holds, 0, "the earlier holder")
    later = node_of(finding.holds, 1, "the next client")
    if blame.who is Culprit.MACHINE:
        long = span(sum(s.end_ns - s.start_ns for s in blame.stalls))
        what = f"it stalled for {long}" if blame.stalls else "its own clock jumped"
        return (
            f"The machine that ran this test: {what}, without any fault of ours. "
            "That is not counted against the lock."
        )
    if finding.code in TOLD_BY_EVIDENCE and blame.release is None:
        return remedies.culprit(finding)
    if blame.release is not None or blame.who is Culprit.CLIENT:
        return _wrong_client(finding, earlier)
    if blame.who is Culprit.HOLDER:
        others = f"{later} and others" if len(incident.rivals) > 1 else later
        return (
            f"The holder, {earlier}: it went on believing for {by} after its lease had run out. "
            f"The service was entitled to let {others} in."
        )
    if blame.promised_until_ns is None:
        return f"The lock service: it let {later} in before {earlier} had released the lock."
    return (
        f"The lock service broke its promise: it let {later} in {by} before the lease that it had "
        f"granted to {earlier} ran out."
    )


def _wrong_client(finding: Finding, earlier: str) -> str:
    release = finding.blame.release or taken_by(finding)
    if release is not None:
        return (
            f"The client {plain(release.node)}: it released a lock that was no longer its own, "
            "and the service let it: the release does not check who the owner is."
        )
    if finding.code is Code.LOST_UPDATE and not finding.blame.by_ns:
        return (
            "A client: what it overwrote was there to be read under the lock, so neither the lock "
            "nor its lease is to blame."
        )
    return (
        f"The client {earlier}: it wrote {span(finding.blame.by_ns)} after it had let go of the "
        "lock itself, so neither the lock nor its lease is to blame."
    )


def _chain(incident: Incident) -> str:
    """What made the release a wrong one, and what it led to."""
    if not incident.takings:
        return ""
    if not incident.chained:
        return f"{upper_first(also_taken(incident))}: it does not check who the owner is."
    late = {
        f.holds[0].start_ns: f
        for f in incident.findings
        if f.code is Code.OVERLAP and f.blame.who is Culprit.HOLDER and f.holds
    }
    parts = []
    if late:
        first = min(late.values(), key=lambda f: f.time_ns)
        who, by = node_of(first.holds, 0, "a holder"), span(first.blame.by_ns)
        more = f"; {amount(len(late) - 1, 'later holder')} did so too" if len(late) > 1 else ""
        parts.append(f"It began when {who} outlived its lease by {by}{more}.")
    if (others := len(incident.takings) - 1) > 0:
        parts.append(
            f"{amount(others, 'more release')} did the same: whoever is robbed of the lock "
            "takes away the next one's."
        )
    return " ".join(parts)


def _active_fault(finding: Finding) -> str:
    blame = finding.blame
    if blame.fault is None:
        unexplained = blame.who is Culprit.SERVICE and blame.release is None
        searched = finding.code in TOLD_BY_HOLDS
        return "No injected fault explains it." if unexplained and searched else ""
    proof = f", proven: {plain(blame.fault.proof, 120)}" if blame.fault.proof else ", unproven"
    return f"Active fault: {fault_name(blame.fault)}{proof}."


# --- what would prevent it ---------------------------------------------------------------------


def prevention_of(history: History, incident: Incident) -> str:
    guard = _guard_advice(history, incident)
    parts = [_prevention(history, incident, guard)]
    for finding, number in remedies.matters_of_their_own(incident):
        what, cure = the_anomalies(finding.code, number), remedies.cure(finding)
        parts.append(f"Against {what}: {cure[:1].lower()}{cure[1:]}")
    return " ".join(parts)


def _prevention(history: History, incident: Incident, advice: str) -> str:
    blame, guard = incident.main.blame, history.terms.guard
    guarded = guard in {"fence", "cas"}
    if blame.who is Culprit.MACHINE:
        return (
            "Nothing about the lock. Run again on a quieter machine, or with a longer lease (--ttl)"
            " so that a short stall does not reach its end."
        )
    own = incident.main.code in TOLD_BY_EVIDENCE and blame.release is None
    if own and not incident.takings:
        return remedies.cure(incident.main, advice)
    if guarded and incident.effect is Verdict.VIOLATION:
        return (
            f"The storage was to refuse this (--guard {guard}) and accepted it: look at how it "
            "compares tokens or versions, and at whether each write carries its own."
        )
    if guard == TRANSACTION and blame.who is Culprit.HOLDER:
        return (
            "Nothing more: what a late holder writes is rolled back together with its transaction."
        )
    if guarded and blame.who is Culprit.HOLDER:
        return (
            "Nothing more: no lock with a lease can prevent a holder from outliving it, and the "
            f"guard at the storage (--guard {guard}) is what keeps the data right."
        )
    return _lock_cure(incident, advice)


def _lock_cure(incident: Incident, guard: str) -> str:
    blame = incident.main.blame
    if incident.takings or blame.release is not None:  # whoever was late before
        return _release_cure(incident, guard)
    if blame.who is Culprit.CLIENT:
        return (
            "Mend the client: it must read under the lock, and write only while it holds it. "
            f"What also helps is {guard}."
        )
    if blame.who is Culprit.SERVICE:
        cure = _service_cure(blame)
        return f"{cure} Whatever the service does, data stay safe behind {guard}."
    if blame.fault is None:
        return (
            "No lock with a lease can prevent this alone: the work took longer than the lease. A "
            f"longer lease, or one renewed meanwhile, makes it rarer. What helps is {guard}."
        )
    return holder_cure(blame.fault, guard)


def _release_cure(incident: Incident, guard: str) -> str:
    cure = (
        "Compare and delete: store a random value of your own with the lock, and release it "
        "only while the value is still yours, in one atomic step, as --backend redis does."
    )
    late = any(f.code is Code.OVERLAP and f.blame.who is Culprit.HOLDER for f in incident.findings)
    return f"{cure} Against a holder that outlives its lease there is {guard}." if late else cure


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
    with_tokens = "" if tokens else ", with a backend that gives tokens"
    return (
        f"a guard at the storage: a fencing token that it checks (--guard fence{with_tokens}), "
        "or compare-and-set on the version (--guard cas)"
    )


def _service_cure(blame: Blame) -> str:
    cure = service_cure(blame.fault)
    if cure:
        return cure
    if blame.promised_until_ns is None:
        return "The service must not grant a lock before its holder has released it."
    return "The service must not grant a lock before the lease that it promised has run out."
