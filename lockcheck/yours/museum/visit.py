"""A run of an exhibit, or of its control, and whether it shows what it is there for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lockcheck.checker.finding import Culprit, Verdict
from lockcheck.nemesis import NO_FAULT
from lockcheck.run.execute import RunOutcome
from lockcheck.runs.record import Record
from lockcheck.words import amount
from lockcheck.yours.museum.exhibit import Exhibit

FEWEST = 10  # acquisitions of a control run: fewer show nothing
# To blame for some of the same findings: who outlives a lease, and where nothing tells.
BESIDE = (Culprit.HOLDER, Culprit.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Visit:
    exhibit: Exhibit
    control: bool
    record: Record
    report: str

    def wrong(self) -> list[str]:
        """What is not as the exhibit has it; empty if all is."""
        wrong = [*(self._of_a_control() if self.control else self._of_an_exhibit())]
        config, counts = self.record.config, self.record.counts
        if config and config.nemesis != (NO_FAULT,) and not (counts and counts.faults):
            wrong.append("no fault was proven")
        wrong += [self.record.problem] if self.record.problem else []
        return [f"{each} ({self.report})" for each in wrong]

    def _of_a_control(self) -> Iterator[str]:
        if self.record.verdict is not Verdict.OK:
            yield f"the control is {self.record.verdict}: {found_by([self])}"
        if self.acquisitions < FEWEST:
            yield f"the control has only {amount(self.acquisitions, 'acquisition')}"

    def _of_an_exhibit(self) -> Iterator[str]:
        for code in self.exhibit.findings:
            blamed = {tally.blame for tally in self.record.findings if tally.code == code}
            if not blamed:
                yield f"{code} is not found"
            elif self.exhibit.blame not in blamed or blamed - {self.exhibit.blame, *BESIDE}:
                yield f"{code} is blamed on: {', '.join(sorted(blamed))}"

    @property
    def acquisitions(self) -> int:
        return self.record.counts.acquisitions if self.record.counts else 0


def visit_of(exhibit: Exhibit, outcome: RunOutcome, *, control: bool) -> Visit:
    return Visit(exhibit, control, outcome.record, str(outcome.store.report))


def found_by(visits: Iterable[Visit]) -> str:
    """What their runs found, most of it first: "overlap (75), lost-update (28)"."""
    found = sum((Counter(visit.record.codes) for visit in visits), Counter[str]())
    return ", ".join(f"{code} ({number})" for code, number in found.most_common()) or "nothing"
