"""Whose fault it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lockcheck.checker.evidence.stalls import total_ns
from lockcheck.checker.finding import Code, Culprit, Finding
from lockcheck.checker.wording import one_to_blame
from lockcheck.history import History, Terms
from lockcheck.results.story.incidents import Incident, foreign_release_of, slept
from lockcheck.results.story.wording.codes import (
    about_a_lock,
    by_evidence,
    by_holds,
    the_anomalies,
    what_went_wrong,
    words_of,
)
from lockcheck.results.story.wording.effects import suffered
from lockcheck.results.story.wording.titles import also_taken
from lockcheck.words import amount, fault_name, lock_server, node_of, plain, span, upper_first


def blame_of(history: History, incident: Incident) -> str:
    terms, main = history.terms, incident.main
    injected = any(fault.proven_ns is not None for fault in history.faults)
    parts = [_first_late(incident), _culprit(terms, incident, main), _chain(incident)]
    parts.append(_under(main, injected=injected))
    known = [main.blame.fault]
    for finding, number in separate_causes(incident):
        has = "has" if number == 1 else "have"
        what = upper_first(the_anomalies(finding.code, number))
        parts.append(f"{what} {has} a separate cause. {_culprit(terms, incident, finding)}")
        parts += [] if finding.blame.fault in known else [_under(finding, injected=injected)]
        known.append(finding.blame.fault)
    return " ".join(filter(None, parts))


def _culprit(terms: Terms, incident: Incident, finding: Finding) -> str:
    release = finding.blame.release or foreign_release_of(finding)
    if finding.blame.who in _EXCUSED:
        return _EXCUSED[finding.blame.who](terms, finding)
    if release is not None:
        return (
            f"The client {plain(release.node)}: it released a lock that was no longer its own, "
            f"and {lock_server(terms)} let it: the release does not check who the owner is."
        )
    if finding.blame.who is Culprit.CLIENT:
        return _client(terms, finding)
    if finding.blame.who is Culprit.HOLDER:
        return _holder(terms, incident, finding)
    if finding.blame.who is Culprit.STORAGE:
        return f"The storage: {_storage_did(finding)}."
    server = lock_server(terms) if about_a_lock(finding) else "the server that answered"
    return f"{upper_first(server)}: {_server_did(finding)}."


def _machine(_: Terms, finding: Finding) -> str:
    stalls = finding.blame.stalls
    what = f"it stalled for {span(total_ns(stalls))}" if stalls else "its own clock jumped"
    return (
        f"The machine that ran this test: {what}, and nothing that was injected did that. It is "
        "not counted against the lock."
    )


def _clocks(terms: Terms, finding: Finding) -> str:
    earlier, later = _pair(finding)
    return (
        f"None of them for certain: {later} was let in {span(finding.blame.by_ns)} before "
        f"{earlier}'s lease was over by the clock of this history, and {lock_server(terms)} counts "
        "by its own."
    )


def _unknown(terms: Terms, finding: Finding) -> str:
    holder, _ = _pair(finding)
    if terms.session:
        return (
            "Not known: the history does not show what kept the session of "
            f"{holder} alive, so neither until when it lasted."
        )
    return (
        f"Not known: {holder} waited for the lock, and the history does not show when it was "
        "granted, so neither from when its lease counts."
    )


_EXCUSED = {Culprit.MACHINE: _machine, Culprit.CLOCKS: _clocks, Culprit.UNKNOWN: _unknown}


def _pair(finding: Finding) -> tuple[str, str]:
    return node_of(finding.holds, 0, "a client"), node_of(finding.holds, 1, "the next client")


def _holder(terms: Terms, incident: Incident, finding: Finding) -> str:
    earlier, later = _pair(finding)
    others = f"{later} and others" if len(incident.rivals) > 1 else later
    entitled = f"{upper_first(lock_server(terms))} was entitled to let {others} in."
    end, late = finding.blame.ended_by, span(finding.blame.by_ns)
    if end is None:
        if slept(incident.main):
            return (
                f"No one's, it is the limit of leases: {earlier} was paused, and could not notice "
                f"that its lease had run out. {entitled}"
            )
        return f"The holder, {earlier}: {_overran(finding)}. {entitled}"
    return (
        f"This kind of lock: it lasts as long as a {plain(terms.ends_with)}, and that "
        f"of {earlier} had ended ({fault_name(end)}) {late} before it let go. {entitled}"
    )


def _overran(finding: Finding) -> str:
    happened = suffering(finding)
    return f"it went on for {span(finding.blame.by_ns)} after its lease had run out ({happened})"


def _server_did(finding: Finding) -> str:
    blame, holds = finding.blame, finding.holds
    if words_of(finding).did(finding) or len(holds) < 2:
        return what_went_wrong(finding)
    earlier, later = (plain(hold.node) for hold in holds[:2])
    if blame.promised_until_ns is None:
        return f"it let {later} in before {earlier} had released the lock"
    return (
        f"it let {later} in {span(blame.by_ns)} before the lease that it had granted to {earlier} "
        "ran out"
    )


def _storage_did(finding: Finding) -> str:
    if finding.code != Code.LOST_UPDATE:
        return what_went_wrong(finding)
    return (
        "what was overwritten had been accepted, and it served an older value to the client that "
        "read it under the lock. Neither the client nor the lock is to blame"
    )


def _client(terms: Terms, finding: Finding) -> str:
    blameless = f"{upper_first(lock_server(terms))} is not to blame."
    if finding.code == Code.LOST_UPDATE and not finding.blame.by_ns:
        return (
            "A client: what it overwrote was there to be read under the lock, so neither the lock "
            "nor its lease is to blame."
        )
    if by_holds(finding):
        late, who = span(finding.blame.by_ns), one_to_blame(finding)
        return f"The client {who}: it wrote {late} after it had let go of the lock itself."
    return f"The {words_of(finding).blamed(finding)}: {what_went_wrong(finding)}. {blameless}"


def suffering(finding: Finding) -> str:
    """What made the holder late; a cut may have struck others, and taken links of its with them."""
    fault, holder = finding.blame.fault, node_of(finding.holds, 0, "")
    if fault is None:
        return "its work took longer than the lease"
    return (suffered(fault) if holder in fault.nodes else "") or fault_name(fault)


def _chain(incident: Incident) -> str:
    """What made the release a wrong one, and what it led to."""
    if not incident.foreign_releases:
        return ""
    if not incident.chained:
        return f"{upper_first(also_taken(incident))}: it does not check who the owner is."
    if (others := len(incident.foreign_releases) - 1) > 0:
        return (
            f"{amount(others, 'more release')} did the same: a client that lost the lock this way "
            "takes away the next one's."
        )
    return ""


def _first_late(incident: Incident) -> str:
    """What came before the releases, and made the first of them a wrong one."""
    late = {f.holds[0].start_ns: f for f in incident.late}
    if not incident.chained or not late:
        return ""
    first = min(late.values(), key=lambda f: f.time_ns)
    more = f"; {amount(len(late) - 1, 'later holder')} did so too" if len(late) > 1 else ""
    return (
        f"It began when {plain(first.holds[0].node)} ({suffering(first)}) outlived its lease by "
        f"{span(first.blame.by_ns)}{more}."
    )


def _under(finding: Finding, *, injected: bool) -> str:
    blame = finding.blame
    if blame.fault is not None:
        proven = "" if blame.fault.proven_ns is not None else " (not confirmed)"
        return f"Injected at the time: {fault_name(blame.fault)}{proven}."
    unexplained = injected and blame.who is Culprit.SERVICE and blame.release is None
    return "No injected fault explains it." if unexplained and by_holds(finding) else ""


def separate_causes(incident: Incident) -> Iterator[tuple[Finding, int]]:
    """Findings with another culprit than the main one: one of each kind, and how many there are."""
    main = incident.main
    found = [
        finding
        for finding in incident.findings
        if by_evidence(finding)
        and finding.code != main.code
        and finding.blame.who is not main.blame.who
        and finding.blame.release is None
    ]
    for code, number in Counter(finding.code for finding in found).items():
        yield next(f for f in found if f.code == code), number
