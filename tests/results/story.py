"""All that tests ask of the words, by one name; and what only they ask."""

from __future__ import annotations

from lockcheck.checker.case import Case
from lockcheck.checker.finding import Finding, Judgement
from lockcheck.history import History
from lockcheck.results.story import narrative, refused
from lockcheck.results.story.grouping import incidents, worst_first
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.narrative import Story
from lockcheck.results.story.numbers import Numbers
from lockcheck.results.story.refused import RefusedWrite
from lockcheck.results.story.seen import about_locks
from lockcheck.results.story.steps.scene import MOST_STEPS
from lockcheck.results.story.steps.stalls import own_stalls
from lockcheck.results.story.steps.step import Kind
from lockcheck.results.story.wording.definitions import side_by_side
from lockcheck.results.story.wording.titles import incident_title

__all__ = [
    "MOST_STEPS",
    "Incident",
    "Kind",
    "Story",
    "about_locks",
    "detail",
    "headline",
    "incident_title",
    "incidents",
    "own_stalls",
    "refused_writes",
    "side_by_side",
    "tell",
    "tell_incident",
    "title",
    "worst_first",
]


def title(finding: Finding) -> str:
    return incident_title(Incident((finding,)))


def tell(history: History, finding: Finding) -> Story:
    return tell_incident(history, Incident((finding,)))


def tell_incident(history: History, incident: Incident) -> Story:
    case = Case(history)
    return narrative.tell_incident(case, incident, Numbers(case))


def refused_writes(history: History) -> tuple[RefusedWrite, ...]:
    return refused.refused_writes(Case(history))


def headline(judgement: Judgement) -> str:
    return narrative.Narrative(judgement).headline


def detail(judgement: Judgement) -> str:
    return narrative.Narrative(judgement).detail
