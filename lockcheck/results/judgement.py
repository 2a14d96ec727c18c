"""A judgement for a user's own code: `print` shows its story, and a test requires that it is ok."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from functools import cached_property
from logging import getLogger
from pathlib import Path

from lockcheck.checker import judge as judged
from lockcheck.checker.finding import Judgement as Judged
from lockcheck.checker.finding import Verdict
from lockcheck.checker.linearizability import Patience, endless
from lockcheck.errors import UserError
from lockcheck.history import History
from lockcheck.plugins import newly_broken
from lockcheck.results.printing import story_text
from lockcheck.results.publish import write_page
from lockcheck.results.story.narrative import Narrative
from lockcheck.runs.facts import RunFacts

NO_RUN = RunFacts(
    run_id="", started_at="", plan=(), versions=(), rerun_command="", check_command=""
)


@dataclass(frozen=True, repr=False)
class Judgement(Judged):
    """`report`: where its page is, or is written once it is required to be ok and is not."""

    report: Path | None = field(default=None, kw_only=True, compare=False)
    facts: RunFacts = field(default=NO_RUN, kw_only=True, compare=False)

    def require_ok(self, report: str | os.PathLike[str] | None = None) -> Judgement:
        """Itself, if the verdict is `ok`. Otherwise writes its page and raises an AssertionError:
        its text is the story and names the page. An `unknown` is not ok, either; the text then has
        what would settle it."""
        __tracebackhide__ = True  # pytest shows the line of the test instead
        if self.verdict is Verdict.OK:
            return self
        path = self.report if report is None else Path(report)
        raise AssertionError(story_text(self._narrative, self._written(path) if path else ""))

    def _written(self, path: Path) -> str:
        """The page's path, or why there is none: that is no reason to leave out the story."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_page(path, self._narrative, self.facts)
        except (OSError, UserError) as error:
            return f"could not be written: {str(error).splitlines()[0]}"
        return str(path)

    @cached_property
    def _narrative(self) -> Narrative:
        return Narrative(self)

    def __str__(self) -> str:
        return story_text(self._narrative)

    def __repr__(self) -> str:
        found = ", ".join(finding.code for finding in self.findings[:3])
        more = ", ..." if len(self.findings) > 3 else ""
        return f"<Judgement {self.verdict}: [{found}{more}] {self._narrative.headline}>"


def with_story(
    judgement: Judged, *, report: Path | None = None, facts: RunFacts = NO_RUN
) -> Judgement:
    for left_out in newly_broken():  # a check among them is one that was not asked
        getLogger("lockcheck").warning("left out: %s", left_out)
    values = {each.name: getattr(judgement, each.name) for each in fields(Judged)}
    return Judgement(**values, report=report, facts=facts)


def judge(history: History, patience: Patience = endless) -> Judgement:
    """Judges a history event by event. `patience` says whether a search may still go on."""
    return with_story(judged(history, patience))
