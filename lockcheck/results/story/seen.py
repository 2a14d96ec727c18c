"""What a run saw, in words and numbers, whatever was found: what there was to judge it by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lockcheck.checker.finding import Code, Counts, Culprit, Freed, Judgement
from lockcheck.durations import duration_words
from lockcheck.history import Effect, FaultSpan, History, Terms
from lockcheck.history.event import NS_PER_MS, STORAGE
from lockcheck.runs.facts import RunFacts
from lockcheck.words import LOCKING, amount, fault_name, listed, moment, plain, span, spans

Row = tuple[str, str]  # what it is, and how many there were
IDLE_SHOWN = REASONS_SHOWN = 3
FEWEST_OF_A_SHARE = 20  # a share of fewer is shown as its two numbers alone
# Faults whose names are nouns that people count; of others it is "2 clock faults".
NOUNS = frozenset({"pause", "partition", "swizzle", "kill", "failover"})
GONE = {Effect.ENDS: "ended", Effect.CUTS: "cut off"}


def about_locks(history: History, judgement: Judgement) -> bool:
    """Else about a register or the like; where nothing happened, a lock was to be tested. `history`
    may be only the part around what was found."""
    if judgement.counts.acquisitions or any(d.overlaps is not None for d in judgement.definitions):
        return True
    happened = judgement.counts.operations or history.operations
    return not happened or any(operation.f in LOCKING for operation in history.operations)


def clients(history: History, judgement: Judgement) -> int | None:
    """None: `history` is only a part."""
    if len(history.operations) < judgement.counts.operations:
        return None
    return len({operation.node for operation in history.operations})


# --- numbers: damage first -----------------------------------------------------------------------


def counted(history: History, judgement: Judgement) -> Iterator[Row]:
    done = injected(history, judgement)
    if about_locks(history, judgement):
        yield from _of_a_lock(history.terms, judgement.counts)
    elif (many := clients(history, judgement)) is not None:
        yield _row(many, "client", "clients")
    if done or history.terms.backend:
        yield "injected and confirmed" if done else "injected", done or "nothing"
    yield _row(judgement.counts.operations, "operation", "operations")


def _of_a_lock(terms: Terms, counts: Counts) -> Iterator[Row]:
    if counts.updates_acknowledged:
        yield f"acknowledged writes lost{_percent(counts)}", _lost(counts)
    if terms.guard != "none" or counts.writes_refused:
        yield _row(counts.stale_writes_refused, "late write refused", "late writes refused")
    writes = counts.writes_accepted + counts.writes_refused
    if writes or (terms.stores and not counts.jobs_run):
        yield _row(counts.writes_accepted, "write accepted", "writes accepted")
    if counts.jobs_run:
        yield _row(counts.jobs_run, "job run", "jobs run")
    yield _row(counts.acquisitions, "time granted", "times granted")
    yield _row(counts.holders, "holder", "different holders")
    if counts.shared_together:
        yield "shared it at once", f"{counts.shared_together:,}"
    if terms.permits > 1 and terms.excludes:
        yield f"of {terms.permits} permits held at once", f"{counts.held_together:,}"
    if counts.entered_deepest > 1:
        yield "levels entered", f"{counts.entered_deepest:,}"


def _row(number: int, one: str, many: str) -> Row:
    return one if number == 1 else many, f"{number:,}"


def injected(history: History, judgement: Judgement) -> str:
    """What was done to it, and took: `1 pause and 2 disk faults`; empty: nothing."""
    proven = Counter(f.name for f in history.faults if f.proven_ns is not None)
    if proven.total() != judgement.counts.faults:  # the history is only a part
        return amount(judgement.counts.faults, "fault") if judgement.counts.faults else ""
    return listed(amount(number, _noun(name)) for name, number in proven.items())


def _noun(name: str) -> str:
    return name if name in NOUNS else f"{plain(name)} fault"


def updates_lost(counts: Counts) -> str:
    """In the form of published results: 14 of 120 acknowledged writes lost (12 %)."""
    return f"{_lost(counts)} acknowledged writes lost{_percent(counts)}"


def _lost(counts: Counts) -> str:
    return f"{counts.updates_lost:,} of {counts.updates_acknowledged:,}"


def _percent(counts: Counts) -> str:
    if not counts.updates_lost or counts.updates_acknowledged < FEWEST_OF_A_SHARE:
        return ""
    share = 100 * counts.updates_lost / counts.updates_acknowledged
    return f" ({share:.0f} %)" if share >= 1 else f" ({share:.1g} %)"


# --- what made holders late and was not injected ------------------------------------------------


def own_cause(judgement: Judgement) -> str:
    """Empty where faults, or the machine, explain all that holders did too late."""
    late = [
        (f.blame.by_ns, plain(f.holds[0].node))
        for f in judgement.of(Code.OVERLAP)
        if f.blame.who is Culprit.HOLDER and f.blame.fault is None
    ]
    if not late:
        return ""
    by_ns, who = max(late)
    return f"work that took longer than the lease ({who}'s by {span(by_ns)})"


# --- why it lasted no longer --------------------------------------------------------------------


def ended_early(history: History, judgement: Judgement, facts: RunFacts) -> str:
    """Empty: it was not."""
    limit_ms, lasted_ns = facts.stops_within_ms, last_moment_ns(history)
    overlapped = judgement.of(Code.OVERLAP) and not facts.problem
    if not overlapped or lasted_ns >= limit_ms * NS_PER_MS:
        return ""
    ended = f"after {span(lasted_ns)} of {duration_words(limit_ms)}, since there was a violation"
    return f"{ended} (--no-stop-on-violation goes on)"


def last_moment_ns(history: History) -> int:
    """When the run ended: the storage testifies afterwards, maybe much later."""
    during = (event.time for event in reversed(history.events) if event.process != STORAGE)
    return next(during, history.end_ns)


# --- how soon locks were free again after their holders were gone --------------------------------


def freed_again(terms: Terms, judgement: Judgement) -> str:
    """Empty where no client was ended, or cut off, while it held a lock."""
    parts = [
        words
        for effect, gone in GONE.items()
        for words in _freed([each for each in judgement.freed if each.effect is effect], gone)
    ]
    if not parts:
        return ""
    name = "session timeout" if terms.session else "lease"
    limit = f"; {name} {span(terms.ttl_ms * NS_PER_MS)}" if terms.ttl_ms else ""
    return " and ".join(parts) + limit


def without_grant(judgement: Judgement) -> str:
    """Empty where no client asked for a lock."""
    longest = judgement.ungranted
    if longest is None:
        return ""
    which = plain(longest.key) or "the lock"
    since = moment(longest.since_ns)
    return f"for {span(longest.length_ns)} at most while {which} was asked for (from {since} on)"


def _freed(freed: list[Freed], gone: str) -> Iterator[str]:
    known = [each.after_ns for each in freed if each.after_ns is not None]
    never = len(freed) - len(known)
    if known:
        yield f"{spans(known)} after its holder was {gone} ({amount(len(known), 'time')})"
    if never:
        after = "" if known else f" after its holder was {gone}"
        yield f"not within this history{after} ({amount(never, 'time')})"


# --- programs that clients worked through ---------------------------------------------------------


def programs_ended(history: History) -> str:
    """Empty where none did. Each was begun anew."""
    reasons = Counter(plain(event.error or "it ended") for event in history.programs_ended)
    if not reasons:
        return ""
    most = [f"{why} ({amount(n, 'time')})" for why, n in reasons.most_common(REASONS_SHOWN)]
    more = reasons.total() - sum(n for _, n in reasons.most_common(REASONS_SHOWN))
    others = f"; other reasons ({amount(more, 'time')})" if more else ""
    return f"ended {amount(reasons.total(), 'time')} and was begun anew: {'; '.join(most)}{others}"


# --- what was injected and made no difference ----------------------------------------------------


def not_exercised(judgement: Judgement) -> str:
    """Empty where all that was proven made a difference."""
    alike: dict[tuple[str, str], list[str]] = {}
    for fault in judgement.not_exercised:
        about = fault_name(fault), why_idle(fault)
        alike.setdefault(about, []).append(moment(fault.worked_from_ns))
    faults = [f"{what} at {listed(at, IDLE_SHOWN)}: {why}" for (what, why), at in alike.items()]
    more = [f"{len(faults) - IDLE_SHOWN:,} more"] if len(faults) > IDLE_SHOWN else []
    return "; ".join(faults[:IDLE_SHOWN] + more)


def why_idle(fault: FaultSpan) -> str:
    """Words for both clients and servers: what was struck may be either."""
    it, its = ("it", "its") if len(fault.nodes) == 1 else ("they", "their")
    idle = f"nobody waited for {its} answer, or for a lock that {it} held"
    if fault.may_have_stopped_nodes:
        return f"meanwhile {idle}"
    return f"meanwhile {idle}; {it} sent no request either"
