"""Two campaigns side by side: which verdicts moved, how rates did, how times and grants did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lockcheck.checker.finding import Verdict
from lockcheck.matrix.judging import standing_of_cell
from lockcheck.matrix.measures import MEASURES, percentile
from lockcheck.matrix.model import CellOutcome, Standing
from lockcheck.matrix.rates import interval, percent
from lockcheck.words import amount

ERROR = "error"
WORST_FIRST = (str(Verdict.VIOLATION), ERROR, str(Verdict.UNKNOWN), str(Verdict.OK))
COMPARED = ("free_again", "ungranted", "grants_per_second")
WORTH_A_LINE = 1.2  # times as much, or as little


@dataclass(frozen=True, slots=True)
class Moved:
    """A trial whose verdict is another one, or a cell that stands otherwise."""

    id: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.id}: {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True)
class Rate:
    """How many runs broke, of those with an answer."""

    k: int
    n: int  # at least one

    @property
    def share(self) -> float:
        return self.k / self.n

    @property
    def interval(self) -> tuple[float, float]:
        return interval(self.k, self.n)

    def __str__(self) -> str:
        low, high = map(percent, self.interval)
        return (
            f"{self.k:,} of {self.n:,} ({percent(self.share)}, {low.removesuffix(' %')} to {high})"
        )


@dataclass(frozen=True, slots=True)
class Rates:
    cell: str
    before: Rate
    after: Rate

    @property
    def apart(self) -> bool:
        """Whether the intervals of 95 % have nothing in common: chance hardly explains that."""
        (low, high), (low_after, high_after) = self.before.interval, self.after.interval
        return high < low_after or high_after < low

    @property
    def difference(self) -> float:
        return abs(self.after.share - self.before.share)

    def __str__(self) -> str:
        words = "the intervals are apart" if self.apart else "the intervals overlap"
        return f"{self.cell}: {self.before} -> {self.after}: {words}"


@dataclass(frozen=True, slots=True)
class Spread:
    number: int
    median: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(len(values), percentile(values, 50), percentile(values, 99))


@dataclass(frozen=True, slots=True)
class Change:
    """Of a measure, in a cell."""

    cell: str
    measure: str
    before: Spread
    after: Spread

    @property
    def ratio(self) -> float | None:
        """Of the medians. None: the one before was 0."""
        return self.after.median / self.before.median if self.before.median else None

    @property
    def factor(self) -> float:
        """By how much it changed, up or down: at least 1."""
        if self.ratio is None:
            return float("inf") if self.after.median else 1.0
        return max(self.ratio, 1 / self.ratio) if self.ratio else float("inf")

    def __str__(self) -> str:
        words = MEASURES[self.measure].words
        ratio = "" if self.ratio is None else f", {self.ratio:.2f} times"
        median = f"median {words(self.before.median)} -> {words(self.after.median)}{ratio}"
        p99 = f"p99 {words(self.before.p99)} -> {words(self.after.p99)}"
        of = f"{self.before.number:,} and {amount(self.after.number, 'measurement')}"
        return f"{self.cell}: {self.measure}: {median}; {p99} ({of})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """All but `came` and `went` is of cells that are in both."""

    number: int  # of these
    trials: tuple[Moved, ...]
    cells: tuple[Moved, ...]
    came: tuple[str, ...]
    went: tuple[str, ...]
    rates: tuple[Rates, ...]
    changes: tuple[Change, ...]

    def lines(self) -> Iterator[str]:
        """Plain text for a terminal: what changed, the worst first."""
        parts = [*self.parts()]
        if not parts:
            yield f"no difference in {amount(self.number, 'cell')}"
        for title, entries in parts:
            yield title
            yield from (f"  {entry}" for entry in entries)

    def parts(self) -> Iterator[tuple[str, Sequence[object]]]:
        """What changed, under its titles; nothing where that is nothing."""
        rates = sorted(
            (each for each in self.rates if each.difference),
            key=lambda each: (not each.apart, -each.difference),
        )
        changes = sorted(
            (each for each in self.changes if each.factor >= WORTH_A_LINE),
            key=lambda each: -each.factor,
        )
        parts: tuple[tuple[str, Sequence[object]], ...] = (
            ("Cells that stand otherwise", self.cells),
            ("Verdicts that moved", self.trials),
            ("Cells that came", self.came),
            ("Cells that went", self.went),
            ("Runs that broke (with the 95 % interval)", rates),
            (f"Times and grants that changed by {percent(WORTH_A_LINE - 1)} or more", changes),
        )
        yield from ((title, entries) for title, entries in parts if entries)


def compared(before: Iterable[CellOutcome], after: Iterable[CellOutcome]) -> Comparison:
    earlier = {outcome.cell.id: outcome for outcome in before}
    later = {outcome.cell.id: outcome for outcome in after}
    both = [(earlier[cell], outcome) for cell, outcome in later.items() if cell in earlier]
    trials = [moved for pair in both for moved in _moved_trials(*pair)]
    cells = [moved for pair in both for moved in _moved_cell(*pair)]
    return Comparison(
        number=len(both),
        trials=tuple(sorted(trials, key=lambda each: WORST_FIRST.index(each.after))),
        cells=tuple(sorted(cells, key=lambda each: Standing(each.after).rank)),
        came=tuple(cell for cell in later if cell not in earlier),
        went=tuple(cell for cell in earlier if cell not in later),
        rates=tuple(rates for pair in both for rates in _rates(*pair)),
        changes=tuple(change for pair in both for change in _changes(*pair)),
    )


def _moved_trials(before: CellOutcome, after: CellOutcome) -> Iterator[Moved]:
    verdicts = {result.trial: str(result.verdict or ERROR) for result in before.results}
    for result in after.results:
        verdict = str(result.verdict or ERROR)
        if verdicts.get(result.trial, verdict) != verdict:
            yield Moved(result.trial, verdicts[result.trial], verdict)


def _moved_cell(before: CellOutcome, after: CellOutcome) -> Iterator[Moved]:
    one, other = standing_of_cell(before), standing_of_cell(after)
    if one is not other and before.results and after.results:
        yield Moved(after.cell.id, str(one), str(other))


def _rates(before: CellOutcome, after: CellOutcome) -> Iterator[Rates]:
    """None where all runs of one of them are without an answer."""
    if before.known and after.known:
        one, other = (Rate(each.violations, len(each.known)) for each in (before, after))
        yield Rates(after.cell.id, one, other)


def _changes(before: CellOutcome, after: CellOutcome) -> Iterator[Change]:
    for name in COMPARED:
        one, other = _values(before, name), _values(after, name)
        if one and other:
            yield Change(after.cell.id, name, Spread.of(one), Spread.of(other))


def _values(outcome: CellOutcome, name: str) -> list[float]:
    return [value for result in outcome.results for value in MEASURES[name].of(result)]
