"""A judgement in plain words, for the terminal and for the report alike.

Pure functions: history and findings in, plain text out, without markup. Whatever comes from a
history passes through `plain`, so a key full of control characters spoils no terminal and no page.

`incidents`  which findings belong together
`verdict`    the headline
`titles`     an incident in one line, and what it did
`scene`      an incident step by step; `cast` chooses who is told, `between` sums up the others
`blame`      whose fault, and what would prevent it
`refused`    what the storage's guard kept out
"""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.checker.finding import Finding
from lockcheck.history import History
from lockcheck.results.story.blame import blame_of, prevention_of
from lockcheck.results.story.incidents import (
    Identity,
    Incident,
    hold_identity,
    incidents,
    operation_identity,
    stale_writes,
    worst_first,
)
from lockcheck.results.story.refused import RefusedWrite, refused_writes
from lockcheck.results.story.scene import MOST_STEPS, steps_of
from lockcheck.results.story.stalls import own_stalls
from lockcheck.results.story.step import Kind, Step, weightiest
from lockcheck.results.story.titles import harm, incident_title, title
from lockcheck.results.story.verdict import headline
from lockcheck.results.story.words import (
    amount,
    fault_name,
    listed,
    moment,
    natural,
    plain,
    sentence,
    span,
    times,
)


@dataclass(frozen=True, slots=True)
class Story:
    title: str
    steps: tuple[Step, ...]
    blame: str
    prevention: str
    harm: tuple[str, ...]  # a line for each kind of finding, notes included


def tell(history: History, finding: Finding) -> Story:
    return tell_incident(history, Incident((finding,)))


def tell_incident(history: History, incident: Incident) -> Story:
    return Story(
        title=incident_title(incident),
        steps=steps_of(history, incident),
        blame=blame_of(incident),
        prevention=prevention_of(history, incident),
        harm=harm(incident),
    )


__all__ = [
    "MOST_STEPS",
    "Identity",
    "Incident",
    "Kind",
    "RefusedWrite",
    "Step",
    "Story",
    "amount",
    "fault_name",
    "harm",
    "headline",
    "hold_identity",
    "incident_title",
    "incidents",
    "listed",
    "moment",
    "natural",
    "operation_identity",
    "own_stalls",
    "plain",
    "refused_writes",
    "sentence",
    "span",
    "stale_writes",
    "steps_of",
    "tell",
    "tell_incident",
    "times",
    "title",
    "weightiest",
    "worst_first",
]
