"""What every report says of a campaign and of its cells, in the same words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from lockcheck.checker.finding import Verdict
from lockcheck.matrix.campaign import Campaign
from lockcheck.matrix.judging import deviations, standing_of, standing_of_cell, worst_first
from lockcheck.matrix.model import CellOutcome, Result, Standing
from lockcheck.matrix.rates import at_most, interval, percent
from lockcheck.words import amount, listed

LONGEST = 400  # characters of a text from a run; commands may be longer
LONGEST_COMMAND = 4000
NAMED = 3  # cells, in the sentence
NOT_AS_EXPECTED = [standing for standing in Standing if standing is not Standing.AS_EXPECTED]
SIGNS = {
    Standing.VIOLATION: "✗",
    Standing.MISSED: "∅",
    Standing.ERROR: "!",
    Standing.UNKNOWN: "?",
    Standing.AS_EXPECTED: "✓",
}
_NOUNS = {
    Standing.VIOLATION: "violation",
    Standing.MISSED: "missed violation",
    Standing.ERROR: "error",
    Standing.UNKNOWN: "unknown",
}


@dataclass(frozen=True)
class TrialLine:
    """A trial, and what to say of it."""

    outcome: CellOutcome
    result: Result

    @cached_property
    def standing(self) -> Standing:
        return standing_of(self.outcome.cell, self.result)

    @property
    def verdict(self) -> str:
        return "error" if self.result.verdict is None else str(self.result.verdict)

    @property
    def why(self) -> str:
        """What is not as expected, as far as one line goes."""
        if self.result.verdict is None:
            return self.result.problem or "It could not be carried out."
        if self.result.verdict is Verdict.UNKNOWN and self.result.doubts:
            return self.result.doubts[0]
        if self.standing is Standing.MISSED:
            return "A violation was expected, and none came."
        return "; ".join([*self.deviations, self.result.headline or f"It was {self.verdict}."])

    @property
    def deviations(self) -> list[str]:
        return [*deviations(self.outcome.cell, self.result)]

    @property
    def page(self) -> str:
        return link(self.result.report)


@dataclass(frozen=True)
class CellLine:
    """A cell, and what to say of it."""

    outcome: CellOutcome

    @cached_property
    def standing(self) -> Standing:
        return standing_of_cell(self.outcome)

    @cached_property
    def trials(self) -> list[TrialLine]:
        return [TrialLine(self.outcome, result) for result in self.outcome.results]

    @property
    def id(self) -> str:
        return self.outcome.cell.id

    @property
    def column(self) -> str:
        return "+".join(self.outcome.cell.config.nemesis)

    @property
    def row(self) -> str:
        """Its id without the nemesis: the backend, its guard, and other options."""
        parts = self.id.split("::")
        if self.column in parts[1:]:
            del parts[parts.index(self.column, 1)]
        return " ".join(parts)

    @property
    def by_share(self) -> bool:
        return bool(self.outcome.cell.expectation.compare)

    @property
    def expected(self) -> str:
        expected = self.outcome.cell.expectation
        by = f", by the {expected.blame}" if expected.blame else ""
        found = f" with {listed(expected.findings)}" if expected.findings else ""
        return f"{expected.words}{found}{by}"

    @property
    def came(self) -> str:
        counts = Counter(trial.verdict for trial in self.trials)
        parts = [f"{verdict} in {number}" for verdict, number in counts.most_common()]
        left = len(self.outcome.cell.seeds) - len(self.trials)
        return ", ".join([*parts, *([f"{left} did not run"] if left > 0 else [])])

    @property
    def found(self) -> list[str]:
        """As in "stale-write under pause, by the holder, in 3 trials", the most frequent first."""
        every = (
            (each.code, each.fault, each.blame, each.effect)
            for result in self.outcome.results
            for each in {(e.code, e.fault, e.blame, e.effect): e for e in result.found}.values()
        )
        return [_found(*kind, number) for kind, number in Counter(every).most_common()]

    @cached_property
    def _counted(self) -> tuple[int, int]:
        if self.by_share:
            verdict, known = self.outcome.cell.expectation.verdict, self.outcome.known
            return sum(result.verdict == verdict for result in known), len(known)
        good = sum(trial.standing is Standing.AS_EXPECTED for trial in self.trials)
        return good, len(self.trials)

    @property
    def share(self) -> str:
        """As in "18 of 20 as expected"; of a cell with a rate, "violation in 14 of 20"."""
        k, n = self._counted
        if not n:
            return "no answer" if self.trials else "did not run"
        if self.by_share:
            return f"{self.outcome.cell.expectation.verdict} in {k:,} of {n:,}"
        return f"{k:,} of {n:,} as expected"

    @property
    def range(self) -> str:
        """The interval of that share, as in "70 to 97 %"."""
        k, n = self._counted
        if not n:
            return ""
        low, high = map(percent, interval(k, n))
        return f"{low.removesuffix(' %')} to {high}"

    @property
    def interval(self) -> str:
        return f"95 % interval {self.range}" if self.range else ""

    @property
    def cannot_tell(self) -> str:
        """Of a cell without a violation, how often there may be one all the same."""
        known = len(self.outcome.known)
        if not known or self.outcome.violations:
            return ""
        most = at_most(known)
        return "too few for a rate" if most >= 1 else f"up to {percent(most)} may violate"

    @cached_property
    def telling(self) -> TrialLine | None:
        """The first trial to look at, where the cell is not as expected."""
        if self.standing is Standing.AS_EXPECTED:
            return None
        if self._misses_its_share:
            wanted = "violation" if self.standing is Standing.VIOLATION else "ok"
            return next((trial for trial in self.trials if trial.verdict == wanted), None)
        return min(self.trials, key=lambda trial: trial.standing.rank, default=None)

    @property
    def why(self) -> str:
        """What is not as expected; empty: nothing."""
        if self._misses_its_share:
            return f"expected {self.expected}, came as {self.share} ({self.interval})"
        return self.telling.why if self.telling else ""

    @property
    def _misses_its_share(self) -> bool:
        return self.by_share and self.standing in (Standing.VIOLATION, Standing.MISSED)

    @property
    def rerun(self) -> str:
        """The command that repeats the trial to look at first, or the first of all."""
        trial = self.telling or next(iter(self.trials), None)
        return trial.result.rerun if trial else ""


def _found(code: str, fault: str, blame: str, effect: str, trials: int) -> str:
    under = f" under {fault}" if fault else ""
    by = f", by the {blame}" if blame else ""
    harmless = ", harmless" if effect == Verdict.OK else ""
    return f"{code}{under}{by}{harmless}, in {amount(trials, 'trial')}"


def cell_lines(campaign: Campaign) -> list[CellLine]:
    """The worst first."""
    return [CellLine(outcome) for outcome in worst_first(campaign.cells)]


def sentence(campaign: Campaign) -> str:
    """As in "31 of 34 cells as expected; 1 violation: redis::pause::fence; 2 unknown"."""
    return "; ".join(_parts(campaign))


def _parts(campaign: Campaign) -> Iterator[str]:
    lines = cell_lines(campaign)
    good = sum(line.standing is Standing.AS_EXPECTED for line in lines)
    yield f"{good:,} of {amount(len(lines), 'cell')} as expected"
    for standing in NOT_AS_EXPECTED:
        ids = [line.id for line in lines if line.standing is standing]
        if ids:
            named = f": {listed(ids, NAMED)}" if standing is lines[0].standing else ""
            noun = _NOUNS[standing]
            counted = f"{len(ids):,} {noun}" if noun == "unknown" else amount(len(ids), noun)
            yield f"{counted}{named}"
    broken = [threshold.text for threshold in campaign.thresholds if threshold.held is False]
    if broken:
        yield f"{amount(len(broken), 'threshold')} not kept: {listed(broken, NAMED)}"
    if campaign.blind:
        yield amount(len(campaign.blind), "blind spot")
    if campaign.news and campaign.news.new:
        yield f"{amount(len(campaign.news.new), 'new finding')} since {campaign.news.against}"


def verdict_of(campaign: Campaign) -> Verdict:
    """What colours the whole: a violation stands for anything that has to be looked at."""
    worst = min((standing_of_cell(each) for each in campaign.cells), key=_rank, default=None)
    broken = any(threshold.held is False for threshold in campaign.thresholds)
    if broken or worst in (Standing.VIOLATION, Standing.MISSED, Standing.ERROR):
        return Verdict.VIOLATION
    unsure = campaign.blind or worst in (Standing.UNKNOWN, None)
    return Verdict.UNKNOWN if unsure else Verdict.OK


def _rank(standing: Standing) -> int:
    return standing.rank


def tick(held: bool | None) -> str:
    return {True: "✓", False: "✗", None: "\N{EN DASH}"}[held]


def held_in_words(held: bool | None) -> str:
    return {True: "kept", False: "not kept", None: "nothing to measure"}[held]


def link(path: str) -> str:
    """A relative address, whatever the path holds: no other scheme, no other host."""
    return f"./{quote(path, errors='replace')}" if path else ""
