"""How soon locks were free again after their holders were gone, in words."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.finding import Freed, Judgement
from lockcheck.checker.words import amount, span, spans
from lockcheck.history import Effect, Terms
from lockcheck.history.event import NS_PER_MS

GONE = {Effect.ENDS: "ended", Effect.CUTS: "cut off"}


def freed_again(terms: Terms, judgement: Judgement) -> str:
    """Empty where no client was ended, or cut off, while it held a lock."""
    told = [
        words
        for effect, gone in GONE.items()
        for words in _told([each for each in judgement.freed if each.effect is effect], gone)
    ]
    if not told:
        return ""
    name = "session timeout" if terms.session else "lease"
    limit = f"; {name} {span(terms.ttl_ms * NS_PER_MS)}" if terms.ttl_ms else ""
    return " and ".join(told) + limit


def _told(freed: list[Freed], gone: str) -> Iterator[str]:
    known = [each.after_ns for each in freed if each.after_ns is not None]
    never = len(freed) - len(known)
    if known:
        yield f"{spans(known)} after its holder was {gone} ({amount(len(known), 'time')})"
    if never:
        after = "" if known else f" after its holder was {gone}"
        yield f"not within this history{after} ({amount(never, 'time')})"
