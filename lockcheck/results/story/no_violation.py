"""The verdict in a sentence or two where there is no violation."""

from __future__ import annotations

from collections.abc import Sequence

from lockcheck.checker.finding import Code, Culprit, Judgement, Verdict
from lockcheck.checker.guard import guard_of
from lockcheck.history import History
from lockcheck.results.story.grouping import incidents, worst_first
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.objects import about_locks, by_clients
from lockcheck.results.story.words import amount, sentence, span, times, upper_first


def unknown(history: History, judgement: Judgement) -> str:
    locks = about_locks(history, judgement)
    what = "the lock is safe" if locks else "the answers are right"
    start = f"This run cannot tell whether {what}."
    if judgement.doubts:
        first, *others = judgement.doubts
        more = f" ({amount(len(others), 'more doubt')})" if others else ""
        return f"{start} {sentence(first)}{more}"
    found = [i for i in incidents(judgement.findings) if i.effect is Verdict.UNKNOWN]
    return f"{start} {amount(len(found), 'incident')} came from stalls of the machine itself."


def ok(history: History, judgement: Judgement) -> str:
    if not about_locks(history, judgement):
        return _ok_without_a_lock(history, judgement)
    counts = judgement.counts
    faults = (
        f"under {amount(counts.faults, 'proven fault')}" if counts.faults else "without any fault"
    )
    scope = (
        f"In {amount(counts.acquisitions, 'acquisition')} by {amount(counts.holders, 'client')} "
        f"{faults}"
    )
    if guard_of(history.terms) == "none":
        return f"{scope} {_kept_apart(history)} at the same time."
    kept = f"{scope} the storage accepted nothing that it should have refused"
    stale = counts.stale_writes_refused
    refused = f"the guard refused {amount(stale, 'stale write')}"
    found = [i for i in worst_first(incidents(judgement.findings)) if i.of(Code.OVERLAP)]
    if not found:
        return f"{kept}; {refused}."
    return f"{kept}. {_shared(found)}; {refused}."


def nothing_found(history: History, judgement: Judgement) -> str:
    """What there could have been."""
    if not about_locks(history, judgement):
        return "Nothing: no answer contradicts the others."
    return f"Nothing: {_kept_apart(history)} at once, and no write came from a holder of the past."


def _kept_apart(history: History) -> str:
    shared = any(hold.acquire.invoke.shared for hold in history.holds)
    if history.terms.permits > 1 or shared:
        return "no lock was held by more clients than it lets in"
    return "no two clients held a lock"


def _ok_without_a_lock(history: History, judgement: Judgement) -> str:
    scope = by_clients(history, judgement)
    if judgement.definitions:
        return f"In {scope} every answer is explained by an order of the operations."
    return f"In {scope} nothing was found."


def _shared(found: Sequence[Incident]) -> str:
    """Behind a guard two holders at once are worth a word, not a verdict."""
    mains = [incident.main for incident in found]
    often = upper_first(times(len(mains)))
    if all(main.blame.who is Culprit.HOLDER for main in mains):
        worst = span(max(main.blame.by_ns for main in mains))
        upto = "" if len(mains) == 1 else "up to "
        return f"{often} a holder outlived its lease, by {upto}{worst}, while others were let in"
    return f"{often} two clients or more held a lock at the same time"
