"""The verdict in at most three sentences; the word itself stands beside them already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lockcheck.checker.finding import Blame, Code, Culprit, Judgement, Verdict
from lockcheck.checker.guard import guard_of
from lockcheck.history import History
from lockcheck.results.story.incidents import (
    Incident,
    incidents,
    losses,
    most_at_once,
    stale_in_order,
    worst_first,
)
from lockcheck.results.story.titles import also_taken, incident_title, let_in, robbery
from lockcheck.results.story.words import (
    amount,
    fault_name,
    in_letters,
    listed,
    moment,
    node_of,
    plain,
    sentence,
    span,
    times,
    upper_first,
)


def headline(history: History, judgement: Judgement) -> str:
    if judgement.verdict is Verdict.VIOLATION:
        return _violation(history, judgement)
    if judgement.verdict is Verdict.UNKNOWN:
        return _unknown(judgement)
    return _ok(history, judgement)


# --- violation ---------------------------------------------------------------------------------


def _violation(history: History, judgement: Judgement) -> str:
    counted = [i for i in incidents(judgement.findings) if i.effect is Verdict.VIOLATION]
    if not counted:
        return "The lock did not keep its promise."
    first = counted[0]
    if len(counted) == 1:
        happened, fault = _happened(first), _fault(first)
    else:
        many, at = amount(len(counted), "incident"), moment(first.start_ns)
        happened = f"{many}, the first at {at}: {incident_title(first)}"
        fault = _faults(counted)
    wrote = judgement.counts.writes_accepted > 0 and guard_of(history.terms) == "none"
    data = _data(counted) or ("No data came to harm this time" if wrote else "")
    return " ".join(f"{part}." for part in (happened, data, fault) if part)


def _happened(incident: Incident) -> str:
    main, key, at = incident.main, plain(incident.key), moment(incident.start_ns)
    if incident.chained:
        return _taken(incident)
    if main.code is not Code.OVERLAP:
        story = incident_title(incident)
        return f"At {at}: {story[:1].lower()}{story[1:]}"
    long = f", for {span(main.length_ns)}" if len(incident.rivals) <= 1 else ""
    return f"At {at} two clients held {key} at once{long}: {_how(incident)}"


def _how(incident: Incident) -> str:
    main, blame = incident.main, incident.main.blame
    earlier, later = node_of(main.holds, 0, "one"), node_of(main.holds, 1, "another")
    if blame.promised_until_ns is None or blame.who is Culprit.CLIENT:
        return f"{earlier} had not let go of it, and {let_in(incident)}"
    if blame.who is Culprit.SERVICE:
        more = f" ({let_in(incident)})" if len(incident.rivals) > 1 else ""
        return f"{later} was let in {span(blame.by_ns)} before {earlier}'s lease ran out{more}"
    return (
        f"{earlier} went on for {span(blame.by_ns)} after its lease had run out, "
        f"while {let_in(incident)}"
    )


def _taken(incident: Incident) -> str:
    key, many, at = plain(incident.key), len(incident.takings), moment(incident.start_ns)
    overlaps = incident.of(Code.OVERLAP)
    longest = span(max((f.length_ns for f in overlaps), default=0))
    if many == 1:
        thief, robbed = robbery(incident.main)
        then = f", and {plain(incident.guest.node)} was let in" if incident.guest else ""
        long = f"; two clients held it at once for up to {longest}" if overlaps else ""
        return f"At {at} a release by {thief} took {key} away from {robbed}{then}{long}"
    text = f"From {at} on, clients took {key} away from each other with {many:,} blind releases"
    if not overlaps:
        return text
    most = in_letters(max(2, most_at_once(incident.holds)))
    return f"{text}; up to {most} held it at once, for up to {longest}"


def _data(counted: Sequence[Incident]) -> str:
    findings = [f for incident in counted for f in incident.findings]
    stale = len(stale_in_order(findings)) or sum(f.code is Code.STALE_WRITE for f in findings)
    lost = sum(f.code is Code.LOST_UPDATE for f in findings)
    parts = []
    if stale:
        its = "its" if len(counted) == 1 and not counted[0].chained else "a"
        what = f"{its} stale write" if stale == 1 else amount(stale, "stale write")
        parts.append(f"the storage accepted {what}")
    if lost:
        acknowledged = "acknowledged " if all(x.acknowledged for x in losses(findings)) else ""
        was = "was" if lost == 1 else "were"
        parts.append(f"{amount(lost, f'{acknowledged}update')} {was} lost")
    return upper_first(", and ".join(parts))


# --- whose fault -------------------------------------------------------------------------------


def _fault(incident: Incident) -> str:
    blame = incident.main.blame
    if blame.release is not None or incident.chained:
        outlived = _outlived(incident)
        began = f" (it began when {outlived} outlived its lease)" if outlived else ""
        return f"The release's fault: it does not check whose lock it removes{began}"
    if blame.who is Culprit.HOLDER:
        then = f"; {also_taken(incident)}" if incident.takings else ""
        return f"Not the service's fault: the holder outlived its lease{_because(blame)}{then}"
    if blame.who is Culprit.SERVICE:
        why = _because(blame) or " (no injected fault explains it)"
        return f"The service's fault: it broke the promise of its lease{why}"
    if blame.who is Culprit.MACHINE:
        return "The machine itself had stalled"
    return "Neither the lock nor its lease is to blame: the client is"


def _outlived(incident: Incident) -> str:
    late = (f.holds[0].node for f in incident.findings if f.blame.who is Culprit.HOLDER and f.holds)
    return plain(next(late, ""))


def _because(blame: Blame) -> str:
    if blame.fault is None:
        return ""
    if blame.who is Culprit.HOLDER and blame.fault.name == "pause":
        return " (it was paused)"
    return f" ({fault_name(blame.fault)})"


def _faults(counted: Sequence[Incident]) -> str:
    words = {
        Culprit.HOLDER: "the holder had outlived its lease",
        Culprit.SERVICE: "the service broke the promise of its lease",
        Culprit.CLIENT: "a client took away or overwrote what was not its own",
        Culprit.MACHINE: "the machine itself had stalled",
    }
    whose = Counter(incident.main.blame.who for incident in counted).most_common()
    if len(whose) == 1:
        worst = max(incident.main.blame.by_ns for incident in counted)
        by = f" (by up to {span(worst)})" if whose[0][0] in _MEASURED and worst else ""
        not_its = ", which is not the service's fault" if whose[0][0] is Culprit.HOLDER else ""
        return f"Each time {words[whose[0][0]]}{by}{not_its}"
    return upper_first(listed(f"{times(many)} {words[who]}" for who, many in whose))


_MEASURED = (Culprit.HOLDER, Culprit.SERVICE)


# --- unknown and ok ----------------------------------------------------------------------------


def _unknown(judgement: Judgement) -> str:
    start = "This run cannot tell whether the lock is safe."
    if judgement.doubts:
        first, *others = judgement.doubts
        more = f" ({amount(len(others), 'more doubt')})" if others else ""
        return f"{start} {sentence(first)}{more}"
    found = [i for i in incidents(judgement.findings) if i.effect is Verdict.UNKNOWN]
    return f"{start} {amount(len(found), 'incident')} came from stalls of the machine itself."


def _ok(history: History, judgement: Judgement) -> str:
    counts = judgement.counts
    faults = (
        f"under {amount(counts.faults, 'proven fault')}" if counts.faults else "without any fault"
    )
    scope = (
        f"In {amount(counts.acquisitions, 'acquisition')} by {amount(counts.holders, 'client')} "
        f"{faults}"
    )
    if guard_of(history.terms) == "none":
        return f"{scope} no two clients held a lock at the same time."
    kept = f"{scope} the storage accepted nothing that it should have refused"
    stale = counts.stale_writes_refused
    refused = f"the guard refused {amount(stale, 'stale write')}"
    found = [i for i in worst_first(incidents(judgement.findings)) if i.of(Code.OVERLAP)]
    if not found:
        return f"{kept}; {refused}."
    return f"{kept}. {_shared(found)}; {refused}."


def _shared(found: Sequence[Incident]) -> str:
    """Behind a guard two holders at once are worth a word, not a verdict."""
    mains = [incident.main for incident in found]
    often = upper_first(times(len(mains)))
    if all(main.blame.who is Culprit.HOLDER for main in mains):
        worst = span(max(main.blame.by_ns for main in mains))
        upto = "" if len(mains) == 1 else "up to "
        return f"{often} a holder outlived its lease, by {upto}{worst}, while others were let in"
    return f"{often} two clients or more held a lock at the same time"
