"""A judgement in plain words, for the terminal and for the report alike.

Pure functions: history and findings in, plain text out, without markup. Whatever comes from a
history passes through `plain`, so a key full of control characters spoils no terminal and no page.

`incidents`  findings that are told together; `grouping` finds out which belong together
`verdict`    the headline; `no_violation` where there is none
`titles`     an incident in one line, and what it did
`scene`      an incident step by step; `cast` chooses who is told, `between` sums up the others
`anomalies`  what the findings are called that are told by the operations in their `evidence`
`reasons`    why a judge is certain, and what would have had to be different
`blame`      whose fault, and what would prevent it; `remedies`, of those in `anomalies`
`freed`      how soon a lock was free again after its holder had ended
`exercised`  faults that nobody felt
`refused`    what the storage's guard kept out
`objects`    whether it is about a lock at all
`definitions`  overlaps and linearizability, side by side
"""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.checker.finding import Finding
from lockcheck.history import History
from lockcheck.results.story.blame import blame_of, prevention_of
from lockcheck.results.story.cuts import cut_apart
from lockcheck.results.story.definitions import SideBySide, side_by_side
from lockcheck.results.story.evidence import call, label
from lockcheck.results.story.exercised import not_exercised
from lockcheck.results.story.freed import freed_again
from lockcheck.results.story.grouping import incidents, incidents_of, worst_first
from lockcheck.results.story.incidents import (
    Identity,
    Incident,
    evidence_of,
    hold_identity,
    operation_identity,
    stale_writes,
    told_by_evidence,
)
from lockcheck.results.story.no_violation import nothing_found
from lockcheck.results.story.objects import LOCKING, about_locks, by_clients, clients
from lockcheck.results.story.reasons import Reason, reasons_of, shortened
from lockcheck.results.story.refused import RefusedWrite, refused_writes
from lockcheck.results.story.scene import MOST_STEPS, steps_of
from lockcheck.results.story.stalls import own_stalls
from lockcheck.results.story.step import Kind, Step, weightiest
from lockcheck.results.story.titles import harm, incident_title, title
from lockcheck.results.story.used import updates_lost, used
from lockcheck.results.story.verdict import headline
from lockcheck.results.story.words import (
    amount,
    fault_name,
    full_stop,
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
    reasons: tuple[Reason, ...]  # where a judge explains itself in more than that


def tell(history: History, finding: Finding) -> Story:
    return tell_incident(history, Incident((finding,)))


def tell_incident(history: History, incident: Incident) -> Story:
    return Story(
        title=incident_title(incident),
        steps=steps_of(history, incident),
        blame=blame_of(incident),
        prevention=prevention_of(history, incident),
        harm=harm(incident),
        reasons=reasons_of(incident),
    )


__all__ = [
    "LOCKING",
    "MOST_STEPS",
    "Identity",
    "Incident",
    "Kind",
    "Reason",
    "RefusedWrite",
    "SideBySide",
    "Step",
    "Story",
    "about_locks",
    "amount",
    "by_clients",
    "call",
    "clients",
    "cut_apart",
    "evidence_of",
    "fault_name",
    "freed_again",
    "full_stop",
    "harm",
    "headline",
    "hold_identity",
    "incident_title",
    "incidents",
    "incidents_of",
    "label",
    "listed",
    "moment",
    "natural",
    "not_exercised",
    "nothing_found",
    "operation_identity",
    "own_stalls",
    "plain",
    "refused_writes",
    "sentence",
    "shortened",
    "side_by_side",
    "span",
    "stale_writes",
    "steps_of",
    "tell",
    "tell_incident",
    "times",
    "title",
    "told_by_evidence",
    "updates_lost",
    "used",
    "weightiest",
    "worst_first",
]
