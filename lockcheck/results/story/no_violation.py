"""The verdict in a sentence or two where there is no violation."""

from __future__ import annotations

from collections.abc import Sequence

from lockcheck.checker.finding import Code, Culprit, Judgement, Verdict
from lockcheck.history import F, History
from lockcheck.history.event import TRANSACTION
from lockcheck.results.story.grouping import incidents_of, worst_first
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.objects import about_locks, by_clients
from lockcheck.results.story.used import used
from lockcheck.results.story.words import amount, sentence, span, times, upper_first


def unknown(history: History, judgement: Judgement) -> str:
    locks = about_locks(history, judgement)
    what = "the lock is safe" if locks else "the answers are right"
    start = f"This run cannot tell whether {what}."
    if judgement.doubts:
        first, *others = judgement.doubts
        more = f" ({amount(len(others), 'more doubt')})" if others else ""
        return f"{start} {sentence(first)}{more}"
    found = [i for i in incidents_of(judgement) if i.effect is Verdict.UNKNOWN]
    return f"{start} {amount(len(found), 'incident')} came from stalls of the machine itself."


def ok(history: History, judgement: Judgement) -> str:
    if not about_locks(history, judgement):
        return _ok_without_a_lock(history, judgement)
    counts = judgement.counts
    idle = len(judgement.not_exercised)
    felt = f" ({idle} of them not exercised)" if idle else ""
    faults = (
        f"under {amount(counts.faults, 'proven fault')}{felt}"
        if counts.faults
        else "without any fault"
    )
    scope = (
        f"In {amount(counts.acquisitions, 'acquisition')} by {amount(counts.holders, 'client')} "
        f"{faults}"
    )
    if history.terms.guard == "none":
        together = upper_first(used(history.terms, counts))
        seen = f" {together}." if together else ""
        return f"{scope} {_kept_apart(history)} at the same time.{seen}"
    kept = f"{scope} the storage accepted nothing that it should have refused"
    refused = f"the guard refused {amount(counts.stale_writes_refused, 'stale write')}"
    if history.terms.guard == TRANSACTION:
        late = sum(1 for o in history.operations if o.f in (F.WRITE, F.RUN) and o.failed)
        refused = f"{amount(late, 'change')} came too late, and did not happen"
    found = [i for i in worst_first(incidents_of(judgement)) if i.of(Code.OVERLAP)]
    if not found:
        return f"{kept}; {refused}."
    return f"{kept}. {_shared(found)}; {refused}."


def nothing_found(history: History, judgement: Judgement) -> str:
    """What there could have been."""
    if not about_locks(history, judgement):
        return "Nothing: no answer contradicts the others."
    if not history.terms.excludes:
        return "Nothing: no acknowledged change was lost, and none was made twice."
    late = ", and no write came from a holder of the past" if history.terms.permits <= 1 else ""
    return f"Nothing: {_kept_apart(history)} at once{late}."


def _kept_apart(history: History) -> str:
    if history.terms.permits > 1:
        return f"no more than {history.terms.permits} clients held a lock"
    if any(hold.shared for hold in history.holds):
        return "no client held a lock together with one that was to have it alone"
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
