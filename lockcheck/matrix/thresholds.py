"""Thresholds for a whole campaign, a line each: `p(99) free_again(redis*) < 3s`.

    threshold = [ statistic ] name [ "(" cells ")" ] comparison limit
    statistic = "p(" percent ")" | "max" | "min" | "mean"      of what is measured many times
    cells     = a pattern of their ids, as in redis*
    limit     = a number, as in 0; of rates as in 5%; of times as in 3s

Percentiles go by the nearest rank: each is a value that was measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from fractions import Fraction
from statistics import fmean

from lockcheck.checker.finding import Verdict
from lockcheck.durations import parse_duration_ms
from lockcheck.errors import UserError
from lockcheck.matrix.campaign import Threshold
from lockcheck.matrix.fingerprints import unexpected
from lockcheck.matrix.judging import COMPARE
from lockcheck.matrix.measures import MEASURES, percentile
from lockcheck.matrix.model import CellOutcome
from lockcheck.matrix.rates import rate_words
from lockcheck.words import amount

COUNTS = ("violations", "unexpected", "unknown", "errors")
RATES = {
    "violation_rate": "violations",
    "unexpected_rate": "unexpected",
    "unknown_rate": "unknown",
    "error_rate": "errors",
}
NAMES = (*COUNTS, *RATES, *MEASURES)
PERCENTILE = "p"
ONE_OF_MANY: dict[str, Callable[[Sequence[float]], float]] = {"max": max, "min": min, "mean": fmean}
STATISTICS = "p(50), p(99), max, min or mean"
EVERY_CELL = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    text: str
    name: str
    statistic: str  # empty: of a number that there is one of
    percent: Fraction | None  # of a percentile
    cells: str
    comparison: str
    limit: Fraction  # of a rate as a share, of a time in ms

    def holds(self, value: float | Fraction) -> bool:
        return bool(COMPARE[self.comparison](value, self.limit))


# --- reading -------------------------------------------------------------------------------------


def parse(text: str) -> Rule:
    """Raises a UserError that points at the word."""
    return _Reader(text).rule()


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def rule(self) -> Rule:
        statistic, percent, word = "", None, self._word(r"[\w-]+")
        if word.text == PERCENTILE:
            statistic, percent = PERCENTILE, self._percent()
        elif word.text in ONE_OF_MANY:
            statistic = word.text
        name = self._word(r"[\w-]+") if statistic else word
        self._check_name(name, word, statistic)
        cells = self._word(r"\([^()]*\)").text.strip("( )")
        comparison = self._word(r"[<>=!]+")
        if comparison.text not in COMPARE:
            what = f"{comparison.text!r} compares nothing" if comparison.text else "no comparison"
            raise self._wrong(comparison, what, f"one of {', '.join(COMPARE)}")
        limit = self._limit(name.text)
        return Rule(
            self._text.strip(),
            name.text,
            statistic,
            percent,
            cells or EVERY_CELL,
            comparison.text,
            limit,
        )

    def _word(self, pattern: str) -> _Word:
        """The next word if it is like that, or an empty one."""
        found = re.compile(rf"\s*({pattern})").match(self._text, self._at)
        if found is None:
            blank = len(self._text) - len(self._text[self._at :].lstrip())
            return _Word("", blank)
        self._at = found.end()
        return _Word(found[1], found.start(1))

    def _percent(self) -> Fraction:
        word = self._word(r"\([^()]*\)")
        inside = word.text.strip("( )")
        number = Fraction(inside) if re.fullmatch(r"\d+(\.\d+)?", inside) else Fraction(0)
        if not 0 < number <= 100:
            raise self._wrong(word, "p takes a percentage above 0, up to 100", "as in p(99)")
        return number

    def _check_name(self, name: _Word, first: _Word, statistic: str) -> None:
        if name.text not in NAMES:
            what = f"{name.text!r} is no number of a campaign" if name.text else "a name is missing"
            close = get_close_matches(name.text, NAMES) or NAMES
            raise self._wrong(name, what, f"choose from: {', '.join(close)}")
        if name.text in MEASURES and not statistic:
            what = f"{name.text} is measured many times"
            raise self._wrong(name, what, f"write {STATISTICS} before it")
        if name.text not in MEASURES and statistic:
            raise self._wrong(first, f"{name.text} is one number", f"leave out {first.text}")

    def _limit(self, name: str) -> Fraction:
        word = self._word(r"\S.*")
        text = word.text.strip()
        if not text:
            raise self._wrong(word, "a limit is missing", f"as in {name} < {_example(name)}")
        if name in MEASURES and MEASURES[name].is_duration:
            try:
                return Fraction(parse_duration_ms(text))
            except UserError as error:
                raise self._wrong(word, error.message, error.cure) from None
        unit = r"\s*%" if name in RATES else ""
        decimals = "" if name in COUNTS else r"(\.\d+)?"
        if re.fullmatch(rf"\d+{decimals}{unit}", text, re.ASCII) is None:
            raise self._wrong(word, f"{text!r} is no limit of {name}", f"as in {_example(name)}")
        limit = Fraction(text.removesuffix("%").strip()) / (100 if unit else 1)
        if unit and limit > 1:
            raise self._wrong(word, "no rate is above 100 %", f"as in {_example(name)}")
        return limit

    def _wrong(self, word: _Word, reason: str, cure: str) -> UserError:
        under = " " * word.start + "^" * max(1, len(word.text))
        pointing = f"\n    {self._text}\n    {under}" if self._text.isprintable() else ""
        return UserError(f"threshold {self._text!r}: {reason}{pointing}", cure=cure)


def _example(name: str) -> str:
    if name in MEASURES:
        return "3s" if MEASURES[name].is_duration else "20"
    return "5%" if name in RATES else "10"


# --- measuring -----------------------------------------------------------------------------------


def measured(
    rule: Rule, outcomes: Iterable[CellOutcome], forgiven: Collection[str] = ()
) -> Threshold:
    """Whether it is kept. `forgiven`: trials whose findings are known, so that they are no longer
    unexpected."""
    chosen = [each for each in outcomes if fnmatchcase(each.cell.id, rule.cells)]
    if not chosen:
        return Threshold(rule.text, None, f"no cell is called {rule.cells}")
    if rule.name in MEASURES:
        return _of_measurements(rule, chosen)
    counted, of = _counted(RATES.get(rule.name, rule.name), chosen, forgiven)
    if not of:
        return Threshold(rule.text, None, _nothing(rule.name))
    if rule.name in RATES:
        return Threshold(rule.text, rule.holds(Fraction(counted, of)), rate_words(counted, of))
    return Threshold(rule.text, rule.holds(counted), f"{counted:,} of {amount(of, 'run')}")


def _counted(
    name: str, outcomes: Sequence[CellOutcome], forgiven: Collection[str]
) -> tuple[int, int]:
    """In how many runs, of those that could tell."""
    results = [result for outcome in outcomes for result in outcome.results]
    carried_out = [result for result in results if result.verdict is not None]
    answered = sum(len(outcome.known) for outcome in outcomes)
    if name == "errors":
        return len(results) - len(carried_out), len(results)
    if name == "unknown":
        return sum(r.verdict is Verdict.UNKNOWN for r in carried_out), len(carried_out)
    if name == "violations":
        return sum(outcome.violations for outcome in outcomes), answered
    trials = (trial for outcome in outcomes for trial in unexpected(outcome))
    return sum(trial not in forgiven for trial in trials), answered


def _nothing(name: str) -> str:
    if RATES.get(name, name) in ("errors", "unknown"):
        return "no run was carried out"
    return "no run has an answer"


def _of_measurements(rule: Rule, outcomes: Sequence[CellOutcome]) -> Threshold:
    measure = MEASURES[rule.name]
    results = [result for outcome in outcomes for result in outcome.results]
    where = {value: r.trial for r in reversed(results) for value in measure.of(r)}
    values = [value for result in results for value in measure.of(result)]
    if not values:
        return Threshold(rule.text, None, f"nothing was measured: {measure.lacking}")
    called = rule.statistic
    if rule.percent is None:
        value = ONE_OF_MANY[rule.statistic](values)
    else:
        value, called = percentile(values, rule.percent), f"p({float(rule.percent):g})"
    words = f"{called} is {measure.words(value)} of {amount(len(values), 'measurement')}"
    trial = where.get(value) if rule.statistic != "mean" else None
    return Threshold(rule.text, rule.holds(value), f"{words}{f', in {trial}' if trial else ''}")
