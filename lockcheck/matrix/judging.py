"""How trials, cells and a campaign stand to what was expected of them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator

from lockcheck.checker.finding import Verdict
from lockcheck.matrix.model import ANY, Cell, CellOutcome, Result, Standing

COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}


def standing_of(cell: Cell, result: Result) -> Standing:
    """Of a trial. Where a share of them is expected, both verdicts are."""
    if result.verdict is None:
        return Standing.ERROR
    if result.verdict is Verdict.UNKNOWN:
        return Standing.UNKNOWN
    expected = cell.expectation
    if expected.verdict == ANY or expected.compare:
        return Standing.AS_EXPECTED
    if result.verdict != expected.verdict:
        missed = expected.verdict == Verdict.VIOLATION
        return Standing.MISSED if missed else Standing.VIOLATION
    return Standing.VIOLATION if [*deviations(cell, result)] else Standing.AS_EXPECTED


def deviations(cell: Cell, result: Result) -> Iterator[str]:
    """What is not as expected though the verdict is."""
    expected = cell.expectation
    counted = [each for each in result.found if each.effect == Verdict.VIOLATION]
    missing = sorted({*expected.findings} - {each.code for each in result.found})
    if missing and result.verdict == expected.verdict:
        yield f"not found: {', '.join(missing)}"
    others = sorted({each.blame for each in counted} - {expected.blame})
    if expected.blame and others:
        yield f"{', '.join(others)} to blame, not only the {expected.blame}"
    yield from result.wanting


def standing_of_cell(outcome: CellOutcome) -> Standing:
    """The worst of its trials; a share is judged by those with an answer."""
    standings = [standing_of(outcome.cell, result) for result in outcome.results]
    worst = min(standings, key=lambda each: each.rank, default=Standing.UNKNOWN)
    expected = outcome.cell.expectation
    if not expected.compare or not outcome.known:
        return worst
    if holds(outcome):
        return worst
    more_were_expected = expected.compare in (">=", ">", "==")
    violations = expected.verdict == Verdict.VIOLATION
    return Standing.MISSED if violations and more_were_expected else Standing.VIOLATION


def holds(outcome: CellOutcome) -> bool:
    """Whether as large a share of the answers is what was expected."""
    expected = outcome.cell.expectation
    number = sum(result.verdict == expected.verdict for result in outcome.known)
    return bool(COMPARE[expected.compare](number / len(outcome.known), expected.share))


def worst_first(outcomes: Iterable[CellOutcome]) -> list[CellOutcome]:
    return sorted(outcomes, key=lambda outcome: standing_of_cell(outcome).rank)
