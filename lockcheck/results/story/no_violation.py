"""The verdict in a sentence or two where there is no violation."""

from __future__ import annotations

from collections.abc import Sequence

from lockcheck.checker.finding import Code, Judgement, Verdict
from lockcheck.checker.words import amount, sentence, times, upper_first
from lockcheck.history import F, History
from lockcheck.history.event import TRANSACTION
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.objects import about_locks, by_clients
from lockcheck.results.story.used import injected, used


def unknown(history: History, judgement: Judgement, incidents: Sequence[Incident]) -> str:
    locks = about_locks(history, judgement)
    what = "the lock is safe" if locks else "the answers are right"
    start = f"This run cannot tell whether {what}."
    if judgement.doubts:
        first, *others = judgement.doubts
        more = f" ({amount(len(others), 'more doubt')})" if others else ""
        return f"{start} {sentence(first)}{more}"
    found = sum(i.effect is Verdict.UNKNOWN for i in incidents)
    return f"{start} {amount(found, 'incident')} came from stalls of the machine itself."


def ok(history: History, judgement: Judgement, incidents: Sequence[Incident]) -> str:
    if not about_locks(history, judgement):
        return _ok_without_a_lock(history, judgement)
    counts, terms = judgement.counts, history.terms
    done = injected(history, judgement)
    idle = len(judgement.not_exercised)
    felt = f" ({idle} of them felt by nobody)" if done and idle else ""
    scope = (
        f"In {amount(counts.acquisitions, 'acquisition')} by {amount(counts.holders, 'client')} "
        f"{f'under {done}{felt}' if done else 'without any fault'}"
    )
    if terms.guard == "none":
        together = upper_first(used(terms, counts))
        seen = f" {together}." if together else ""
        return f"{scope} {_kept_apart(history)} at the same time.{seen}"
    overlaps = sum(bool(incident.of(Code.OVERLAP)) for incident in incidents)
    held = f"the lock overlapped {times(overlaps)}" if overlaps else "the lock never overlapped"
    return f"{scope} {held}; {_refused(history, judgement)}; no data was damaged."


def _refused(history: History, judgement: Judgement) -> str:
    if history.terms.guard == TRANSACTION:
        late = sum(1 for o in history.operations if o.f in (F.WRITE, F.RUN) and o.failed)
        return f"{amount(late, 'change')} came too late, and did not happen"
    stale, taken = judgement.counts.stale_writes_refused, len(judgement.of(Code.STALE_WRITE))
    if taken:  # compare-and-set lets in what overwrites nothing
        refused = amount(stale, "stale write")
        return f"the guard refused {refused} and let in {taken:,} that overwrote nothing"
    if stale <= 1:
        return "the guard refused the one stale write" if stale else "no stale write came"
    return f"the guard refused all {stale:,} stale writes"


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
