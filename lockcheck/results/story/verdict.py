"""The verdict in at most three sentences; the word itself stands beside them already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lockcheck.checker.finding import Blame, Code, Culprit, Judgement, Verdict
from lockcheck.history import History
from lockcheck.results.story import remedies
from lockcheck.results.story.anomalies import anomalies
from lockcheck.results.story.effects import suffered
from lockcheck.results.story.grouping import incidents_of
from lockcheck.results.story.incidents import (
    TOLD_BY_EVIDENCE,
    TOLD_BY_HOLDS,
    Incident,
    most_at_once,
)
from lockcheck.results.story.no_violation import ok, unknown
from lockcheck.results.story.titles import also_taken, incident_title, let_in, robbery
from lockcheck.results.story.words import (
    amount,
    by_its_clock,
    fault_name,
    in_letters,
    listed,
    lock_name,
    lower_first,
    moment,
    node_of,
    plain,
    span,
    times,
    upper_first,
)


def headline(history: History, judgement: Judgement) -> str:
    if judgement.verdict is Verdict.VIOLATION:
        return _violation(history, judgement)
    if judgement.verdict is Verdict.UNKNOWN:
        return unknown(history, judgement)
    return ok(history, judgement)


# --- violation ---------------------------------------------------------------------------------


def _violation(history: History, judgement: Judgement) -> str:
    counted = [i for i in incidents_of(judgement) if i.effect is Verdict.VIOLATION]
    if not counted:
        return "The lock did not keep its promise."
    first = counted[0]
    if len(counted) == 1:
        happened, fault = _happened(first), _fault(first)
    else:
        many, at = amount(len(counted), "incident"), moment(first.start_ns)
        happened = f"{many}, the first at {at}: {_title_within(first)}"
        fault = _faults(counted)
    data = _data(counted) or (
        "No data came to harm this time" if _unharmed(history, judgement) else ""
    )
    others = remedies.whose_besides(counted)
    fault += f"; {others}" if others else ""
    clock = ""
    if judgement.began_ns:
        clock = f"By the log's clock that was {by_its_clock(judgement.began_ns, first.start_ns)}"
    parts = (happened, clock, data, _besides(counted), fault)
    return " ".join(f"{part}." for part in parts if part)


def _title_within(incident: Incident) -> str:
    title = incident_title(incident)
    return lower_first(title) if incident.main.code in TOLD_BY_EVIDENCE else title


def _unharmed(history: History, judgement: Judgement) -> bool:
    """Worth a word where there was data, and what was found lets clients harm it."""
    wrote = judgement.counts.writes_accepted > 0 and history.terms.guard == "none"
    codes = {f.code for f in judgement.findings if f.effect is Verdict.VIOLATION}
    return wrote and codes <= _ENDANGERS_DATA


_ENDANGERS_DATA = TOLD_BY_HOLDS | {Code.TOKEN_REGRESSION, Code.SILENT_LOSS, Code.REVIVED}


def _happened(incident: Incident) -> str:
    main, key, at = incident.main, lock_name(incident.key), moment(incident.start_ns)
    if incident.chained:
        return _taken(incident)
    if main.code is not Code.OVERLAP:
        return f"At {at}: {lower_first(incident_title(incident))}"
    long = f", for {span(main.length_ns)}" if len(incident.rivals) <= 1 else ""
    if incident.crowd:
        many, permits = in_letters(len(incident.crowd)), in_letters(len(main.holds) - 1)
        held = f"{many} clients held one of the {permits} permits of {key} at once"
    elif any(hold.shared for hold in main.holds):
        held = f"{key} was held alone and shared at once"
    else:
        held = f"two clients held {key} at once"
    return f"At {at} {held}{long}: {_how(incident)}"


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
    key, many, at = lock_name(incident.key), len(incident.takings), moment(incident.start_ns)
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
    stale = sum(len(i.stale) or len(i.of(Code.STALE_WRITE)) for i in counted)
    lost = sum(len(i.of(Code.LOST_UPDATE)) for i in counted)
    parts = []
    if stale:
        its = "its" if len(counted) == 1 and not counted[0].chained else "a"
        what = f"{its} stale write" if stale == 1 else amount(stale, "stale write")
        parts.append(f"the storage accepted {what}")
    if lost:
        known = all(loss.acknowledged for incident in counted for loss in incident.losses)
        acknowledged = "acknowledged " if known else ""
        was = "was" if lost == 1 else "were"
        parts.append(f"{amount(lost, f'{acknowledged}update')} {was} lost")
    return upper_first(", and ".join(parts))


def _besides(counted: Sequence[Incident]) -> str:
    """What else was found with it. That no order explains an overlap goes without saying."""
    found: Counter[Code] = Counter(
        finding.code
        for incident in counted
        for finding in incident.findings
        if finding.code in TOLD_BY_EVIDENCE
        and finding.code not in {incident.main.code, Code.NOT_LINEARIZABLE}
    )
    told = listed(anomalies(code, found[code]) for code in TOLD_BY_EVIDENCE if found[code])
    return f"With it came {told}" if told else ""


# --- whose fault -------------------------------------------------------------------------------


def _fault(incident: Incident) -> str:
    blame = incident.main.blame
    if blame.release is not None or incident.chained:
        outlived = _outlived(incident)
        began = f" (it began when {outlived} outlived its lease)" if outlived else ""
        return f"The release's fault: it does not check whose lock it removes{began}"
    if blame.who is Culprit.HOLDER:
        then = f"; {also_taken(incident)}" if incident.takings else ""
        return f"Not the service's fault: the holder outlived its lease{_suffering(incident)}{then}"
    if blame.who is not Culprit.MACHINE and incident.main.code in TOLD_BY_EVIDENCE:
        return remedies.fault(incident.main, _because(blame))
    if blame.who is Culprit.SERVICE:
        why = _because(blame) or " (no injected fault explains it)"
        leased = blame.promised_until_ns is not None
        did = "it broke the promise of its lease" if leased else "the lock had not been released"
        return f"The service's fault: {did}{why}"
    if blame.who is Culprit.MACHINE:
        return "The machine itself had stalled"
    return "Neither the lock nor its lease is to blame: the client is"


def _outlived(incident: Incident) -> str:
    late = (f.holds[0].node for f in incident.findings if f.blame.who is Culprit.HOLDER and f.holds)
    return plain(next(late, ""))


def _because(blame: Blame) -> str:
    return "" if blame.fault is None else f" ({fault_name(blame.fault)})"


def _suffering(incident: Incident) -> str:
    """What befell the holder; a cut may have struck others, and taken links of its with them."""
    fault, holder = incident.main.blame.fault, node_of(incident.main.holds, 0, "")
    if fault is not None and holder in fault.nodes and (happened := suffered(fault)):
        return f" ({happened})"
    return _because(incident.main.blame)


def _faults(counted: Sequence[Incident]) -> str:
    words = {
        Culprit.HOLDER: "the holder had outlived its lease",
        Culprit.SERVICE: "the service broke the promise of its lease",
        Culprit.CLIENT: "a client took away or overwrote what was not its own",
        Culprit.MACHINE: "the machine itself had stalled",
    }
    promised = any(i.main.blame.promised_until_ns is not None for i in counted)
    if not promised or any(incident.main.code in TOLD_BY_EVIDENCE for incident in counted):
        words = words | _WHOEVER
    whose = Counter(incident.main.blame.who for incident in counted).most_common()
    if len(whose) == 1:
        worst = max(incident.main.blame.by_ns for incident in counted)
        measured = promised and whose[0][0] in _MEASURED
        by = f" (by up to {span(worst)})" if measured and worst else ""
        not_its = ", which is not the service's fault" if whose[0][0] is Culprit.HOLDER else ""
        return f"Each time {words[whose[0][0]]}{by}{not_its}"
    return upper_first(listed(f"{times(many)} {words[who]}" for who, many in whose))


# Where not every incident is about a lease, or about somebody else's lock or write.
_WHOEVER = {
    Culprit.SERVICE: "the service is to blame",
    Culprit.CLIENT: "a client is to blame",
}
_MEASURED = (Culprit.HOLDER, Culprit.SERVICE)
