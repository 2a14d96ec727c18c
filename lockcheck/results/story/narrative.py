"""A judgement in words: made once, and shown by the terminal, the page and verdict.json."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lockcheck.checker.case import Case
from lockcheck.checker.check import GUARDS
from lockcheck.checker.finding import Judgement, Verdict
from lockcheck.history import History, Terms
from lockcheck.results.story.contrast import Contrast, contrast_of
from lockcheck.results.story.grouping import incidents, worst_first
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.numbers import Numbers
from lockcheck.results.story.picture import Picture, picture_of
from lockcheck.results.story.point import Level, Point, point_of
from lockcheck.results.story.seen import about_locks
from lockcheck.results.story.smallest import Smallest
from lockcheck.results.story.steps.scene import steps_of
from lockcheck.results.story.steps.step import Step
from lockcheck.results.story.untested import next_steps
from lockcheck.results.story.verdict import detail
from lockcheck.results.story.whole_run import whole_run
from lockcheck.results.story.wording.advice import advice_of
from lockcheck.results.story.wording.blame import blame_of
from lockcheck.results.story.wording.cures import prevention_of
from lockcheck.results.story.wording.reasons import Reason, reasons_of
from lockcheck.results.story.wording.settling import settled_by
from lockcheck.results.story.wording.titles import harm, incident_title

KEEP = "Keep {guard}, and a test that fails without it."


@dataclass(frozen=True, slots=True)
class Story:
    """An incident in words."""

    title: str
    badge: str  # what came of it
    steps: tuple[Step, ...]
    left_out: int  # steps, of which there were too many
    blame: str
    prevention: str
    advice: tuple[str, ...]  # the same in at most three steps
    harm: tuple[str, ...]  # a line for each kind of finding, notes included
    reasons: tuple[Reason, ...]  # where a judge explains itself in more than that


def tell_incident(case: Case, incident: Incident, numbers: Numbers) -> Story:
    history = case.history
    steps, left_out = steps_of(case, incident, numbers)
    return Story(
        title=incident_title(incident),
        badge=badge(history, incident),
        steps=steps,
        left_out=left_out,
        blame=blame_of(history, incident),
        prevention=prevention_of(history, incident),
        advice=advice_of(history, incident),
        harm=harm(incident, numbers),
        reasons=reasons_of(incident),
    )


def badge(history: History, incident: Incident) -> str:
    if incident.effect is Verdict.UNKNOWN:
        return "not counted: the machine stalled"
    if incident.effect is Verdict.OK:
        return "guard stopped it" if history.terms.guard in GUARDS else "no violation"
    return "data damaged" if incident.damaged else "violation"


class Narrative:
    """A judgement in words. Its caller makes one, and passes it to all that show it."""

    def __init__(self, judgement: Judgement, smallest: Smallest | None = None) -> None:
        self.judgement = judgement
        self.smallest = smallest  # None: it was not looked for, or there is none
        self.case = judgement.case
        self.history = judgement.case.history
        self.numbers = Numbers(judgement.case)
        self._stories: dict[int, Story] = {}

    @cached_property
    def about_locks(self) -> bool:
        return about_locks(self.history, self.judgement)

    @cached_property
    def _in_time(self) -> tuple[Incident, ...]:
        return incidents(self.judgement.findings)

    @cached_property
    def incidents(self) -> tuple[Incident, ...]:
        return worst_first(self._in_time)

    @property
    def headline(self) -> str:
        """The main point, in one sentence."""
        return self.point.sentence

    @cached_property
    def detail(self) -> str:
        """The same in a few sentences, with the numbers."""
        return detail(self.history, self.judgement, self._in_time, self.headline)

    @cached_property
    def point(self) -> Point:
        return point_of(self.history, self.judgement, self.incidents)

    @cached_property
    def picture(self) -> Picture | None:
        """Of the worst incident, or else of the whole run; None: of neither there is one."""
        worst = picture_of(self.case, self.incidents[0]) if self.incidents else None
        return worst or whole_run(self.history, self.judgement)

    @cached_property
    def contrast(self) -> Contrast | None:
        return contrast_of(self.incidents[0]) if self.in_detail else None

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What to do, in at most three steps."""
        if self.point.level is Level.GUARDED:
            return (KEEP.format(guard=self.point.guard),)
        if settled := settled_by(self.judgement):
            return (settled,)
        if self.judgement.verdict is Verdict.OK:
            return tuple(next_steps(self.history.terms))
        return next((story.advice for _, story in self.stories(1)), ())

    @property
    def in_detail(self) -> Incident | None:
        """The incident that is in there, and needs no other title: the first violation."""
        violated = self.judgement.verdict is Verdict.VIOLATION
        return self.incidents[0] if violated and self.incidents else None

    def stories(self, most: int) -> Iterator[tuple[Incident, Story]]:
        """The stories of at most so many incidents, the worst first: each made on demand."""
        for number, incident in enumerate(self.incidents[:most]):
            if number not in self._stories:
                self._stories[number] = tell_incident(self.case, incident, self.numbers)
            yield incident, self._stories[number]


def again(terms: Terms, command: str) -> tuple[str, str]:
    """The command that repeats a run, and how it differs: one client alone shows nothing."""
    if terms.clients == 1:
        return re.sub(r"--clients 1\b", "--clients 5", command), ", with more clients"
    return command, ""
