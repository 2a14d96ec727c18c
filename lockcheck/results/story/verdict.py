"""The verdict in a few sentences, the damage first; the word itself stands beside them already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lockcheck.checker.finding import Blame, Code, Culprit, Judgement, Verdict
from lockcheck.checker.words import (
    amount,
    by_its_clock,
    fault_name,
    in_letters,
    listed,
    lock_server,
    lower_first,
    moment,
    span,
    times,
    upper_first,
)
from lockcheck.history import History, Terms
from lockcheck.results.story.blame import late_holders, server_of, suffering, whose_besides
from lockcheck.results.story.codes import BY_EVIDENCE, BY_HOLDS, CODES, anomalies, deed
from lockcheck.results.story.incidents import Incident, most_at_once
from lockcheck.results.story.no_violation import ok, unknown
from lockcheck.results.story.titles import incident_title
from lockcheck.results.story.used import updates_lost


def headline(history: History, judgement: Judgement, incidents: Sequence[Incident]) -> str:
    """`incidents`: in the order of time."""
    if judgement.verdict is Verdict.UNKNOWN:
        return unknown(history, judgement, incidents)
    if judgement.verdict is Verdict.OK:
        return ok(history, judgement, incidents)
    counted = [i for i in incidents if i.effect is Verdict.VIOLATION]
    first = counted[0]
    damage = _damage(judgement, counted) or _unharmed(history, judgement)
    at, said = moment(first.start_ns), incident_title(first)
    clock = ""
    if judgement.began_ns:
        clock = f"By the log's clock that was {by_its_clock(judgement.began_ns, first.start_ns)}"
    if len(counted) == 1:
        happened, cause = f"At {at}: {lower_first(said)}", _cause(history.terms, first)
    else:
        many = amount(len(counted), "incident")
        happened, cause = f"{many}, the first at {at}: {lower_first(said)}", _causes(counted)
    others = whose_besides(counted)
    cause += f"; {others}" if others else ""
    parts = (damage, happened + _chain(first), clock, _besides(counted), cause)
    return " ".join(f"{part}." for part in parts if part)


def _chain(incident: Incident) -> str:
    overlaps = incident.of(Code.OVERLAP)
    if not (incident.chained and overlaps):
        return ""
    most, longest = most_at_once(incident.holds), span(max(f.length_ns for f in overlaps))
    return f"; up to {in_letters(max(2, most))} clients held it at once, for up to {longest}"


def _damage(judgement: Judgement, counted: Sequence[Incident]) -> str:
    """As a fraction of all that was acknowledged, where that is known."""
    stale = sum(len(i.stale) for i in counted)
    found = sum(len(i.of(Code.LOST_UPDATE)) for i in counted)
    lost = updates_lost(judgement.counts) if judgement.counts.updates_lost else ""
    lost = lost or (f"{amount(found, 'acknowledged write')} lost" if found else "")
    whose = "from a client whose lock had gone to another"
    accepted = f"{anomalies(Code.STALE_WRITE, stale)} accepted ({whose})" if stale else ""
    return listed(filter(None, (lost, accepted)))


def _unharmed(history: History, judgement: Judgement) -> str:
    """Worth a word where there was data, and what was found lets clients harm it."""
    wrote = judgement.counts.writes_accepted > 0 and history.terms.guard == "none"
    codes = {f.code for f in judgement.findings if f.effect is Verdict.VIOLATION}
    return "No data was damaged this time" if wrote and codes <= _ENDANGERS_DATA else ""


_ENDANGERS_DATA = BY_HOLDS | {Code.TOKEN_REGRESSION, Code.SILENT_LOSS, Code.REVIVED}


def _besides(counted: Sequence[Incident]) -> str:
    """What else was found with it. That no order explains an overlap goes without saying."""
    found: Counter[Code] = Counter(
        finding.code
        for incident in counted
        for finding in incident.findings
        if finding.code in BY_EVIDENCE
        and finding.code not in {incident.main.code, Code.NOT_LINEARIZABLE}
    )
    told = listed(anomalies(code, found[code]) for code in CODES if found[code])
    return f"With it came {told}" if told else ""


# --- the cause -----------------------------------------------------------------------------------


def _cause(terms: Terms, incident: Incident) -> str:
    """In a few words; `blame` has more."""
    blame, server = incident.main.blame, lock_server(terms)
    if blame.release is not None or incident.chained:
        late = [f.holds[0].node for f in late_holders(incident)][:1]
        began = f"; it began when {late[0]} outlived its lease" if late else ""
        return f"Cause: the release does not check whose lock it removes{began}"
    if blame.who is Culprit.HOLDER:
        happened = "" if incident.slept else suffering(incident.main)
        why = f"Cause: {happened}. " if happened else ""
        return f"{why}{upper_first(server)} kept its promise, but no lease can stop a client"
    if blame.who is Culprit.MACHINE:
        return "Cause: the machine itself had stalled"
    if incident.main.code in BY_EVIDENCE:
        who = "the client" if blame.who is Culprit.CLIENT else server_of(terms, incident.main)
        return f"Cause: {who}: {deed(incident.main)}{_because(blame)}"
    if blame.who is Culprit.CLIENT:
        return "Cause: the client, and neither the lock nor its lease"
    leased = blame.promised_until_ns is not None
    did = "broke the promise of its lease" if leased else "let in two at once"
    return f"Cause: {server} {did}{_because(blame) or ' (nothing that was injected explains it)'}"


def _because(blame: Blame) -> str:
    return "" if blame.fault is None else f" ({fault_name(blame.fault)})"


def _causes(counted: Sequence[Incident]) -> str:
    words = {
        Culprit.HOLDER: "a client had outlived its lease",
        Culprit.SERVICE: "the lock server broke the promise of its lease",
        Culprit.CLIENT: "a client took away or overwrote what was not its own",
        Culprit.MACHINE: "the machine itself had stalled",
    }
    promised = any(i.main.blame.promised_until_ns is not None for i in counted)
    if not promised or any(incident.main.code in BY_EVIDENCE for incident in counted):
        words |= {
            Culprit.SERVICE: "the lock server is to blame",
            Culprit.CLIENT: "a client is to blame",
        }
    whose = Counter(incident.main.blame.who for incident in counted).most_common()
    if len(whose) > 1:
        return upper_first(listed(f"{times(many)} {words[who]}" for who, many in whose))
    [(who, _)] = whose
    worst = max(incident.main.blame.by_ns for incident in counted)
    measured = promised and worst and who in (Culprit.HOLDER, Culprit.SERVICE)
    kept = "; the lock server kept its promise" if who is Culprit.HOLDER else ""
    return f"Each time {words[who]}{f' (by up to {span(worst)})' if measured else ''}{kept}"
