"""What is new in a campaign: its unexpected findings against those of an earlier one, and against
a file of those that are known.

    [[known]]
    code = "overlap"        # of a finding, or missed, or wanting
    backend = "redis"
    fault = "pause"         # empty: none is to blame; left out: any
    blame = "service"       # left out: anyone's
    until = 2026-12-31      # the last day on which it counts
    why = "ticket 123"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from pathlib import Path

from lockcheck.checker import CHECKS
from lockcheck.checker.finding import Culprit, Verdict
from lockcheck.errors import UserError
from lockcheck.files import read_document
from lockcheck.matrix.campaign import News
from lockcheck.matrix.fingerprints import (
    OWN_CODES,
    Fingerprint,
    Seen,
    kinds_asked,
    seen_in,
    unexpected,
)
from lockcheck.matrix.model import CellOutcome
from lockcheck.words import amount, plain

KNOWN = "known"
NEEDED = ("code", "backend", "until", "why")
ALLOWED = (*NEEDED, "fault", "blame")
EXAMPLE = 'code = "overlap", backend = "redis", until = 2026-12-31, why = "ticket 123"'
UNLIKELY = 0.05


@dataclass(frozen=True, slots=True)
class Known:
    """An entry of the file."""

    code: str
    backend: str
    until: date
    why: str
    fault: str | None = None  # None: any
    blame: str | None = None

    def covers(self, each: Fingerprint) -> bool:
        return (
            (self.code, self.backend) == (each.code, each.backend)
            and self.fault in (None, each.fault)
            and self.blame in (None, each.blame)
        )

    def __str__(self) -> str:
        fault = "" if self.fault is None else f" under {plain(self.fault) or 'no fault'}"
        blame = "" if self.blame is None else f", blame {self.blame}"
        return f"{self.code}{fault} on {plain(self.backend)}{blame}"


@dataclass(frozen=True, slots=True)
class Baseline:
    path: str = ""
    known: tuple[Known, ...] = ()

    def valid(self, today: date) -> tuple[Known, ...]:
        return tuple(entry for entry in self.known if today <= entry.until)

    def expired(self, today: date) -> tuple[Known, ...]:
        return tuple(entry for entry in self.known if entry.until < today)


NONE = Baseline()


def forgiven(now: Iterable[CellOutcome], baseline: Baseline, today: date) -> frozenset[str]:
    """The trials of which all that was unexpected is known: they do not fail the campaign."""
    valid = baseline.valid(today)
    return frozenset(
        trial
        for outcome in now
        for trial, found in unexpected(outcome).items()
        if all(_covering(valid, each) for each in found)
    )


def _covering(entries: Iterable[Known], each: Fingerprint) -> Known | None:
    return next((entry for entry in entries if entry.covers(each)), None)


# --- news ----------------------------------------------------------------------------------------


def news_of(
    now: Sequence[CellOutcome],
    before: Sequence[CellOutcome] = (),
    *,
    against: str,
    today: date,
    baseline: Baseline = NONE,
) -> News:
    """`before`: the earlier campaign, which `against` names; none where there is the file alone.
    What is known is ongoing."""
    return _Comparing(now, before, baseline, today).news(against)


class _Comparing:
    def __init__(
        self,
        now: Sequence[CellOutcome],
        before: Sequence[CellOutcome],
        baseline: Baseline,
        today: date,
    ) -> None:
        self._now = {outcome.cell.id: outcome for outcome in now}
        self._seen, self._seen_before = seen_in(now), seen_in(before)
        self._valid, self._expired = baseline.valid(today), baseline.expired(today)

    def news(self, against: str) -> News:
        before, now = self._seen_before, self._seen
        new = [each for each in now if each not in before and not _covering(self._valid, each)]
        ongoing = [self._ongoing(each) for each in now if each not in new]
        resolved = []
        for each in (each for each in before if each not in now):
            outcomes = [self._now[cell] for cell in before[each].cells if cell in self._now]
            if any(_is(each, outcome) for outcome in outcomes):
                resolved.append(f"{each} (it still comes, and is expected by now)")
            elif runs := sum(len(outcome.known) for outcome in outcomes):
                resolved.append(f"{each} ({_gone(runs, before[each])})")
            else:
                words = f"no run that could show it has an answer; {before[each]} before"
                ongoing.append(f"{each} ({words})")
        resolved += self._unneeded()
        return News(tuple(map(self._new, new)), tuple(ongoing), tuple(resolved), against)

    def _new(self, each: Fingerprint) -> str:
        expired = _covering(self._expired, each)
        was_known = f"; was known until {expired.until}: {plain(expired.why)}" if expired else ""
        return f"{each} ({self._seen[each]}{was_known})"

    def _ongoing(self, each: Fingerprint) -> str:
        valid, expired = _covering(self._valid, each), _covering(self._expired, each)
        words = [str(self._seen[each])]
        if each in self._seen_before:
            words.append(f"{self._seen_before[each]} before")
        if valid is not None:
            words.append(f"known until {valid.until}: {plain(valid.why)}")
        elif expired is not None:
            words.append(f"was known until {expired.until}: {plain(expired.why)}")
        return f"{each} ({'; '.join(words)})"

    def _unneeded(self) -> Iterator[str]:
        """Entries, expired or not, that nothing matches, although runs could have shown it."""
        for entry in (*self._valid, *self._expired):
            able = sum(len(o.known) for o in self._now.values() if _could_show(entry, o))
            if able and not any(map(entry.covers, self._seen)):
                runs = amount(able, "run")
                yield f"{entry}: unexpected in none of {runs}, so its entry is not needed any more"


def _is(each: Fingerprint, outcome: CellOutcome) -> bool:
    """Whether it came, expected or not."""
    return any(
        (found.code, found.fault, found.blame) == (each.code, each.fault, each.blame)
        and found.effect == Verdict.VIOLATION
        for result in outcome.known
        for found in result.found
    )


def _gone(runs: int, seen: Seen) -> str:
    words = f"none of {amount(runs, 'run')}; {seen} before"
    may_have_missed = (1 - seen.runs / seen.of) ** runs > UNLIKELY
    return f"{words}: too few to be sure" if may_have_missed else words


def _could_show(entry: Known, outcome: CellOutcome) -> bool:
    kinds = kinds_asked(outcome.cell)
    if entry.backend != outcome.cell.config.backend:
        return False
    return not entry.fault or entry.fault in kinds or entry.fault == " and ".join(kinds)


# --- the file ------------------------------------------------------------------------------------


def read_baseline(path: Path) -> Baseline:
    """Raises a UserError with the cure."""
    try:
        tables = tomllib.loads(read_document(path, follow=True).decode())
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}", cure="name a file that is there"
        ) from error
    except (ValueError, RecursionError) as error:  # all that TOML can fail by
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UserError(f"{path} cannot be read: {reason}", cure="correct it") from error
    return baseline_in(tables, str(path))


def baseline_in(tables: Mapping[str, object], path: str) -> Baseline:
    entries = tables.get(KNOWN, [])
    others = [name for name in tables if name != KNOWN]
    if others or not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        wrong = f"unknown table {others[0]!r}" if others else f"{KNOWN} is no list of tables"
        raise UserError(f"{path}: {wrong}", cure=f"write [[{KNOWN}]], and below it {EXAMPLE}")
    read = (_known(entry, f"{path}: entry {n}") for n, entry in enumerate(entries, 1))
    return Baseline(path, tuple(read))


def _known(entry: Mapping[str, object], where: str) -> Known:
    for name in entry:
        if name not in ALLOWED:
            close = get_close_matches(name, ALLOWED) or ALLOWED
            raise UserError(
                f"{where}: unknown name {name!r}", cure=f"choose from: {', '.join(close)}"
            )
    for name in NEEDED:
        if name not in entry:
            raise UserError(f"{where}: {name} is missing", cure=f"as in {EXAMPLE}")
    until = entry["until"]
    if type(until) is not date:  # a time of day is a date to Python, too
        raise UserError(
            f"{where}: until = {until!s} is no date", cure="as in until = 2026-12-31, unquoted"
        )
    texts = {name: value for name, value in entry.items() if name != "until"}
    for name, value in texts.items():
        if not isinstance(value, str) or not (value.strip() or name == "fault"):
            raise UserError(f"{where}: {name} = {value!r} is no text", cure=f"as in {EXAMPLE}")
    _one_of(where, texts, "code", [*CHECKS, *OWN_CODES])
    _one_of(where, texts, "blame", [str(who) for who in Culprit])
    return Known(until=until, **{name: str(value) for name, value in texts.items()})


def _one_of(where: str, texts: Mapping[str, object], name: str, choices: Sequence[str]) -> None:
    value = texts.get(name, choices[0])
    if value not in choices:
        close = get_close_matches(str(value), choices) or choices
        raise UserError(
            f"{where}: unknown {name} {value!r}", cure=f"choose from: {', '.join(close)}"
        )
