"""The verdict in a few sentences, the damage first; the word itself stands beside them already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lockcheck.checker.finding import Code, Culprit, Judgement, Verdict
from lockcheck.history import History
from lockcheck.history.event import TRANSACTION
from lockcheck.results.story.incidents import Incident, identity
from lockcheck.results.story.refused import rolled_back
from lockcheck.results.story.seen import about_locks, clients, injected, updates_lost
from lockcheck.results.story.wording.codes import anomalies, by_evidence, check_of, precedence
from lockcheck.results.story.wording.doubts import in_words
from lockcheck.results.story.wording.titles import incident_title
from lockcheck.words import (
    amount,
    by_its_clock,
    listed,
    lock_server,
    lower_first,
    moment,
    plain,
    sentence,
    span,
    times,
    upper_first,
)

_CAUSES = {
    Culprit.HOLDER: "a client had outlived its lease",
    Culprit.CLIENT: "a client is to blame",
    Culprit.STORAGE: "the storage served an older value than it had accepted",
    Culprit.MACHINE: "the machine itself had stalled",
    Culprit.CLOCKS: "the difference of two clocks explains it",
    Culprit.UNKNOWN: "who is to blame is not known",
}


def detail(
    history: History, judgement: Judgement, incidents: Sequence[Incident], known: str
) -> str:
    """`incidents`: in the order of time; `known`: what stands above it."""
    if judgement.verdict is Verdict.UNKNOWN:
        return _unknown(history, judgement, incidents, known)
    if judgement.verdict is Verdict.OK:
        return _ok(history, judgement, incidents)
    counted = [i for i in incidents if i.effect is Verdict.VIOLATION]
    first, many = counted[0], len(counted)
    at, first_title = moment(first.damage_ns), incident_title(first)
    damage = _damage(judgement, counted)
    named = f": {lower_first(first_title)}" if first_title.lower() not in known.lower() else ""
    if many > 1:
        what = f"{many:,} incidents, the first at {at}{named}"
    else:  # the title tells how it came to the damage, which took until then
        what = first_title if damage and named else f"At {at}{named}"
    clock = ""
    if judgement.began_ns:
        clock = f"By the log's clock that was {by_its_clock(judgement.began_ns, first.damage_ns)}"
    parts = (
        f"{damage}, at {at}" if damage and many == 1 else damage or _unharmed(history, judgement),
        what,
        clock,
        _besides(counted, {Code.NOT_LINEARIZABLE, *([Code.SILENT_LOSS] if damage else [])}),
        _causes(history, counted) if many > 1 else "",
    )
    return " ".join(f"{part}." for part in parts if part)


def _damage(judgement: Judgement, counted: Sequence[Incident]) -> str:
    """As a fraction of all that was acknowledged, where that is known."""
    stale = {identity(write) for i in counted for write in i.stale}
    overwriting = {identity(loss.overwriting) for i in counted for loss in i.losses}
    found = sum(len(i.of(Code.LOST_UPDATE)) for i in counted)
    known = all(loss.acknowledged for incident in counted for loss in incident.losses)
    lost = updates_lost(judgement.counts) if judgement.counts.updates_lost else ""
    if found and not lost:
        lost = f"{amount(found, 'acknowledged write' if known else 'write')} lost"
    whose = "from a client whose lock had gone to another"
    late = anomalies(Code.STALE_WRITE, len(stale))
    if stale and overwriting == stale:  # each is one write: what is stale is what overwrote
        return f"{lost}, overwritten by {late} ({whose})"
    losses = [loss for incident in counted for loss in incident.losses if loss.lost]
    if stale and {identity(write) for loss in losses for write in loss.lost} == stale:
        return f"{late} accepted ({whose}), which other writes then overwrote"
    if not stale and found == len(losses) == 1:
        by, whose = plain(losses[0].overwriting.node), plain(losses[0].lost[0].node)
        return f"{lost}: {by} overwrote {whose}'s"
    both = len(stale & overwriting)
    these = f", {both:,} of which {'is' if both == 1 else 'are'} what overwrote" if both else ""
    accepted = f"{late} accepted ({whose}){these}" if stale else ""
    return listed(filter(None, (lost, accepted)))


def _unharmed(history: History, judgement: Judgement) -> str:
    """Worth a word where there was data, and what was found lets clients harm it."""
    wrote = judgement.counts.writes_accepted > 0 and history.terms.guard == "none"
    counted = (f for f in judgement.findings if f.effect is Verdict.VIOLATION)
    harmful = wrote and all(check_of(f).endangers_data for f in counted)
    return "No data was damaged this time" if harmful else ""


def _besides(counted: Sequence[Incident], goes_without_saying: set[str]) -> str:
    """What else was found with it. That no order explains an overlap, or that a client did not
    learn of the loss that let its data be damaged, goes without saying."""
    found = [
        finding
        for incident in counted
        for finding in incident.findings
        if by_evidence(finding) and finding.code not in {incident.main.code, *goes_without_saying}
    ]
    found.sort(key=precedence, reverse=True)
    kinds = Counter(finding.code for finding in found)
    also = listed(anomalies(code, number) for code, number in kinds.items())
    return f"With it came {also}" if also else ""


def _causes(history: History, counted: Sequence[Incident]) -> str:
    causes = {Culprit.SERVICE: f"{lock_server(history.terms)} is to blame", **_CAUSES}
    whose = Counter(incident.main.blame.who for incident in counted).most_common()
    if len(whose) > 1:
        each = listed(f"{times(many)} {causes[who]}" for who, many in whose)
        return upper_first(each)
    [(who, _)] = whose
    worst = max(incident.main.blame.by_ns for incident in counted)
    by = f" (by up to {span(worst)})" if worst and who is Culprit.HOLDER else ""
    return f"Each time {causes[who]}{by}"


# --- where there is no violation -----------------------------------------------------------------


def _unknown(
    history: History, judgement: Judgement, incidents: Sequence[Incident], known: str
) -> str:
    what = "the lock is safe" if about_locks(history, judgement) else "the answers are right"
    start = f"This run cannot tell whether {what}."
    if judgement.doubts:
        first, *others = in_words(judgement)
        more = f" ({amount(len(others), 'more doubt')})" if others else ""
        return f"{start}{'' if sentence(first) == known else f' {sentence(first)}'}{more}"
    found = sum(i.effect is Verdict.UNKNOWN for i in incidents)
    return f"{start} {amount(found, 'incident')} came from stalls of the machine itself."


def _ok(history: History, judgement: Judgement, incidents: Sequence[Incident]) -> str:
    if not about_locks(history, judgement):
        return _ok_without_a_lock(history, judgement)
    counts, terms = judgement.counts, history.terms
    done, idle = injected(history, judgement), len(judgement.not_exercised)
    felt = f" ({idle} of them made no difference)" if done and idle else ""
    scope = (
        f"In {amount(counts.acquisitions, 'acquisition')} by {amount(counts.holders, 'client')} "
        f"{f'under {done}{felt}' if done else 'without any fault'}"
    )
    if terms.guard == "none":
        return f"{scope} {_kept_apart(history)}."
    found = [len(incident.of(Code.OVERLAP)) for incident in incidents]
    overlaps, many = sum(found), sum(map(bool, found))
    held = f"holds overlapped {times(overlaps)}" if overlaps else "no two holds overlapped"
    among = f" in {amount(many, 'incident')}" if overlaps > many else ""
    done = f"{held}{among}; {_refused(history, judgement)}; no data was damaged."
    if terms.guard == TRANSACTION or not counts.stale_writes_refused:
        return f"{scope}, {done}"
    # The lock alone would have let data be damaged.
    guard = f"the guard at the storage (--guard {terms.guard})"
    return f"Safe only because of {guard}, which must stay: {lower_first(scope)}, {done}"


def _refused(history: History, judgement: Judgement) -> str:
    if history.terms.guard == TRANSACTION:
        late = rolled_back(history)
        lost = f"{amount(late, 'change')} came too late, and did not happen"
        return lost if late else "no change came too late"
    stale, taken = judgement.counts.stale_writes_refused, len(judgement.of(Code.STALE_WRITE))
    if taken:  # compare-and-set lets in what overwrites nothing
        refused = amount(stale, "late write")
        return f"the guard refused {refused} and let in {taken:,} that overwrote nothing"
    if stale <= 1:
        return "the guard refused the one late write" if stale else "no late write came"
    return f"the guard refused all {stale:,} late writes"


def _kept_apart(history: History) -> str:
    if not history.terms.excludes:
        return "no acknowledged change was lost, and none was made twice"
    if history.terms.permits > 1:
        return f"no more than {history.terms.permits} clients held a lock at the same time"
    if any(hold.shared for hold in history.holds):
        return "no client held a lock together with one that was to have it alone"
    return "no two clients held a lock at the same time"


def _ok_without_a_lock(history: History, judgement: Judgement) -> str:
    many, operations = clients(history, judgement), judgement.counts.operations
    by = "" if many is None else f" by {amount(many, 'client')}"
    order = "every answer is explained by an order of the operations"
    found = order if judgement.definitions else "nothing was found"
    return f"In {amount(operations, 'operation')}{by} {found}."
