"""Why a judge is certain, where one sentence does not say it; and what would have had to be
different.
"""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.checker.finding import Finding
from lockcheck.results.story.incidents import TOLD_BY_EVIDENCE, Incident
from lockcheck.results.story.titles import title
from lockcheck.results.story.words import amount, full_stop

FINDINGS_EXPLAINED = 3
SENTENCES_AT_EACH_END = 12


@dataclass(frozen=True, slots=True)
class Reason:
    """`about` is empty where the incident is about nothing else."""

    about: str
    sentences: tuple[str, ...]
    otherwise: str


def reasons_of(incident: Incident) -> tuple[Reason, ...]:
    """One for each finding that explains itself, the main one first; the same words only once."""
    main = incident.main
    told = [f for f in incident.findings if f is main or f.code in TOLD_BY_EVIDENCE]
    explained = [f for f in told if f.steps or f.otherwise]
    explained.sort(key=lambda finding: finding is not main)
    by_words = {(f.steps, f.otherwise): f for f in reversed(explained)}
    chosen = [f for f in explained if by_words[f.steps, f.otherwise] is f][:FINDINGS_EXPLAINED]
    alone = len(incident.findings) == 1
    return tuple(_reason(finding, "" if alone else title(finding)) for finding in chosen)


def _reason(finding: Finding, about: str) -> Reason:
    return Reason(about, shortened(finding.steps), full_stop(finding.otherwise))


def shortened(steps: tuple[str, ...], each: int = SENTENCES_AT_EACH_END) -> tuple[str, ...]:
    """A long explanation keeps its beginning and its end."""
    told = tuple(filter(None, map(full_stop, steps)))
    left_out = len(told) - 2 * each
    if left_out <= 1:
        return told
    return (*told[:each], f"… and {amount(left_out, 'more step')} …", *told[-each:])
