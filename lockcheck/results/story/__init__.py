"""A judgement in plain words, for the terminal, the report and verdict.json alike.

Pure functions: history and findings in, plain text out, without markup. Whatever comes from a
history passes through `plain`, so a key full of control characters spoils no terminal and no page.

`narrative`  all of it, made once
`incidents`  findings that are told together; `grouping` finds out which belong together
`codes`      what is said of each kind of finding
`verdict`    the headline; `no_violation` where there is none
`titles`     an incident in one line, and what it did
`scene`      an incident step by step; `cast` chooses who is told, `between` sums up the others,
             `evidence` tells of operations one by one
`reasons`    why a judge is certain
`blame`      whose fault; `cures`, what would prevent it; `effects`, what a fault did
`numbers`    writes by a number that readers can count
`freed`      how soon a lock was free again after its holder had ended
`exercised`  faults that nobody felt
`refused`    what the storage's guard kept out
`objects`    whether it is about a lock at all
`definitions`  overlaps and linearizability, side by side
"""

from __future__ import annotations

from lockcheck.results.story.cuts import cut_apart
from lockcheck.results.story.definitions import SideBySide, side_by_side
from lockcheck.results.story.exercised import not_exercised
from lockcheck.results.story.freed import freed_again
from lockcheck.results.story.grouping import incidents, worst_first
from lockcheck.results.story.incidents import (
    Identity,
    Incident,
    evidence_of,
    losses,
    operation_identity,
    stale_writes,
    told_by_evidence,
)
from lockcheck.results.story.narrative import (
    Narrative,
    Story,
    again,
    narrative_of,
    tell,
    tell_incident,
)
from lockcheck.results.story.no_violation import nothing_found
from lockcheck.results.story.objects import about_locks, by_clients, clients
from lockcheck.results.story.reasons import Reason, shortened
from lockcheck.results.story.refused import RefusedWrite, refused_writes
from lockcheck.results.story.scene import MOST_STEPS
from lockcheck.results.story.stalls import own_stalls
from lockcheck.results.story.step import Kind, Step, weightiest
from lockcheck.results.story.titles import incident_title, title
from lockcheck.results.story.used import injected, updates_lost, used

__all__ = [
    "MOST_STEPS",
    "Identity",
    "Incident",
    "Kind",
    "Narrative",
    "Reason",
    "RefusedWrite",
    "SideBySide",
    "Step",
    "Story",
    "about_locks",
    "again",
    "by_clients",
    "clients",
    "cut_apart",
    "evidence_of",
    "freed_again",
    "incident_title",
    "incidents",
    "injected",
    "losses",
    "narrative_of",
    "not_exercised",
    "nothing_found",
    "operation_identity",
    "own_stalls",
    "refused_writes",
    "shortened",
    "side_by_side",
    "stale_writes",
    "tell",
    "tell_incident",
    "title",
    "told_by_evidence",
    "updates_lost",
    "used",
    "weightiest",
    "worst_first",
]
