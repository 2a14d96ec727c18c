"""Why a judge is certain, where one sentence does not say it."""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.checker.words import amount, full_stop
from lockcheck.results.story.codes import BY_EVIDENCE
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.titles import title

FINDINGS_EXPLAINED = 3
SENTENCES_AT_EACH_END = 12


@dataclass(frozen=True, slots=True)
class Reason:
    """`about` is empty where the incident is about nothing else."""

    about: str
    sentences: tuple[str, ...]


def reasons_of(incident: Incident) -> tuple[Reason, ...]:
    """One for each finding that explains itself, the main one first; the same words only once."""
    main = incident.main
    told = [f for f in incident.findings if f.steps and (f is main or f.code in BY_EVIDENCE)]
    told.sort(key=lambda finding: finding is not main)
    by_words = {finding.steps: finding for finding in reversed(told)}
    chosen = [f for f in told if by_words[f.steps] is f][:FINDINGS_EXPLAINED]
    alone = len(incident.findings) == 1
    return tuple(Reason("" if alone else title(f), shortened(f.steps)) for f in chosen)


def shortened(steps: tuple[str, ...], each: int = SENTENCES_AT_EACH_END) -> tuple[str, ...]:
    """A long explanation keeps its beginning and its end."""
    told = tuple(filter(None, map(full_stop, steps)))
    left_out = len(told) - 2 * each
    if left_out <= 1:
        return told
    return (*told[:each], f"… and {amount(left_out, 'more step')} …", *told[-each:])
