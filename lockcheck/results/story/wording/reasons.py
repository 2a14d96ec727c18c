"""Why a judge is certain, where one sentence does not say it."""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.checker.finding import Finding
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.wording.codes import by_evidence, in_full, the_anomalies
from lockcheck.words import amount, full_stop

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
    found = [f for f in incident.findings if f is main or by_evidence(f)]
    found.sort(key=lambda finding: finding is not main)
    by_words: dict[tuple[str, ...], Finding] = {}
    for finding in found:
        by_words.setdefault(in_full(finding), finding)
    chosen = [(f, words) for words, f in by_words.items() if words][:FINDINGS_EXPLAINED]
    alone = len(incident.findings) == 1
    return tuple(
        Reason("" if alone else the_anomalies(f.code, 1), shortened(words)) for f, words in chosen
    )


def shortened(steps: tuple[str, ...], each: int = SENTENCES_AT_EACH_END) -> tuple[str, ...]:
    """A long explanation keeps its beginning and its end."""
    sentences = tuple(filter(None, map(full_stop, steps)))
    left_out = len(sentences) - 2 * each
    if left_out <= 1:
        return sentences
    return (*sentences[:each], f"… and {amount(left_out, 'more step')} …", *sentences[-each:])
