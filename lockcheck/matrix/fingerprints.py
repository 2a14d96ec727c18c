"""What was unexpected in a campaign, as fingerprints: by these it is known again the next night,
whatever the seed was, and in whichever cells of a lock it comes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockcheck.checker.finding import Culprit, Verdict
from lockcheck.matrix.judging import holds, standing_of, standing_of_cell
from lockcheck.matrix.model import Cell, CellOutcome, Result, Standing
from lockcheck.nemesis import ALL, Step, parse_nemesis
from lockcheck.nemesis.fitting import steps_of
from lockcheck.words import amount, plain

# Codes beside those of findings:
MISSED = "missed"  # a violation that was expected and did not come
WANTING = "wanting"  # the verdict came, and not what else was expected of the runs
OWN_CODES = {
    MISSED: "the violation that was expected did not come",
    WANTING: "the verdict was as expected, and what belongs to it was not",
}
WHOSE = {
    Culprit.SERVICE: "the lock service's fault",
    Culprit.HOLDER: "the holder's fault",
    Culprit.MACHINE: "the machine's fault",
    Culprit.CLIENT: "the client's fault",
    Culprit.STORAGE: "the storage's fault",
    Culprit.CLOCKS: "explained by the clocks",
    Culprit.UNKNOWN: "whose fault is not known",
}


@dataclass(frozen=True, slots=True, order=True)
class Fingerprint:
    code: str  # of a finding, or one of OWN_CODES
    backend: str
    fault: str  # that is to blame; of a code of our own, the kinds that were injected
    blame: str = ""

    def __str__(self) -> str:
        """As in "overlap under pause on redis, the lock service's fault"."""
        under = f"under {plain(self.fault)}" if self.fault else "without a fault"
        where = f"{under} on {plain(self.backend)}"
        if self.code in OWN_CODES:
            return f"{where}, {OWN_CODES[self.code]}"
        whose = f", {WHOSE.get(Culprit(self.blame), self.blame)}" if self.blame else ""
        return f"{plain(self.code)} {where}{whose}"


@dataclass(frozen=True, slots=True)
class Seen:
    """In how many runs, of those with an answer in the cells that had it."""

    runs: int
    of: int
    cells: frozenset[str]

    def __str__(self) -> str:
        return f"{self.runs} of {amount(self.of, 'run')}"


def unexpected(outcome: CellOutcome) -> Mapping[str, frozenset[Fingerprint]]:
    """By trial; those that fared as expected are left out."""
    by_trial = _of_a_share(outcome) if outcome.cell.expectation.compare else _of_each(outcome)
    return {trial: found for trial, found in by_trial.items() if found}


def _of_each(outcome: CellOutcome) -> dict[str, frozenset[Fingerprint]]:
    found = {}
    for result in outcome.known:
        standing = standing_of(outcome.cell, result)
        if standing is Standing.MISSED:
            found[result.trial] = frozenset({_own(outcome.cell, MISSED)})
        elif standing is Standing.VIOLATION:
            found[result.trial] = _found(outcome.cell, result) or frozenset(
                {_own(outcome.cell, WANTING)}
            )
    return found


def _of_a_share(outcome: CellOutcome) -> dict[str, frozenset[Fingerprint]]:
    """Single runs may fare either way: where too many do, all of those are unexpected."""
    cell, known = outcome.cell, outcome.known
    if not known or holds(outcome):
        return {}
    if standing_of_cell(outcome) is Standing.MISSED:
        without = [result for result in known if result.verdict is not Verdict.VIOLATION]
        return {r.trial: frozenset({_own(cell, MISSED)}) for r in without or known}
    if cell.expectation.verdict == Verdict.OK and not outcome.violations:  # `ok in < 50 %`
        return {r.trial: frozenset({_own(cell, WANTING)}) for r in known}
    return {result.trial: _found(cell, result) for result in known}


def _found(cell: Cell, result: Result) -> frozenset[Fingerprint]:
    """The findings that count; where a violation is expected, those with others to blame for it."""
    expected = cell.expectation
    if expected.verdict == Verdict.VIOLATION and not expected.compare and not expected.blame:
        return frozenset()
    as_expected = "" if expected.verdict == Verdict.OK else expected.blame
    return frozenset(
        Fingerprint(each.code, cell.config.backend, each.fault, each.blame)
        for each in result.found
        if each.effect == Verdict.VIOLATION and not (as_expected and each.blame == as_expected)
    )


def _own(cell: Cell, code: str) -> Fingerprint:
    return Fingerprint(code, cell.config.backend, " and ".join(kinds_asked(cell)))


def steps_asked(cell: Cell) -> tuple[Step, ...]:
    """Without those that a seed draws."""
    texts = (text for text in cell.config.nemesis if text.strip() != ALL)
    return tuple(steps_of(map(parse_nemesis, texts)))


def kinds_asked(cell: Cell) -> tuple[str, ...]:
    """The names of the faults that its runs inject, each once."""
    drawn = [ALL for text in cell.config.nemesis if text.strip() == ALL]
    return tuple(dict.fromkeys([*(step.kind.name for step in steps_asked(cell)), *drawn]))


def seen_in(outcomes: Iterable[CellOutcome]) -> dict[Fingerprint, Seen]:
    runs: Counter[Fingerprint] = Counter()
    of: Counter[Fingerprint] = Counter()
    cells: defaultdict[Fingerprint, set[str]] = defaultdict(set)
    for outcome in outcomes:
        here = Counter(each for found in unexpected(outcome).values() for each in found)
        for fingerprint, number in here.items():
            runs[fingerprint] += number
            of[fingerprint] += len(outcome.known)
            cells[fingerprint].add(outcome.cell.id)
    return {each: Seen(runs[each], of[each], frozenset(cells[each])) for each in sorted(runs)}
