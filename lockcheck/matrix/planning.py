"""What a campaign's file asks for, as cells: rows of options, where a list stands for each of its
values, with an expectation each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import Any

from lockcheck.checker import CHECKS
from lockcheck.checker.finding import Culprit, Verdict
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.matrix.model import ANY, Cell, Expectation

Configure = Callable[[Sequence[str]], RunConfig]  # from the words of `lockcheck run`
Fits = Callable[[RunConfig], object]  # raises a UserError where it does not
Table = Mapping[str, Any]

SEEDS = 3
OF_A_ROW = ("expect", "findings", "blame", "seeds")
OF_THE_FILE = ("row", "run", "seeds", "thresholds")
NOT_OF_A_ROW = frozenset({"seed", "out", "keep", "json", "again"})
NOT_IN_AN_ID = frozenset(
    {"backend", "nemesis", "guard", "runtime", "time-limit", "stop-on-violation"}
)
VERDICTS = (str(Verdict.OK), str(Verdict.VIOLATION), ANY)
_EXPECTED = re.compile(
    r"(?P<verdict>\w+)(?: in (?P<compare>>=|<=|>|<|==) ?(?P<share>\d+(?:\.\d+)?) ?%"
    r"(?: of (?P<of>\d+))?)?"
)
EXAMPLE = 'expect = "ok", "violation", "any", or "violation in >= 80 % of 20"'


@dataclass(frozen=True, slots=True)
class Asked:
    """A file, read."""

    cells: tuple[Cell, ...]
    thresholds: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # what a product makes, and does not fit together


@dataclass(frozen=True, slots=True)
class _Reader:
    path: str
    known: Collection[str]  # the options of a run, without dashes
    configure: Configure
    fits: Fits
    demanding: bool

    def wrong(self, where: str, what: str, cure: str) -> UserError:
        return UserError(f"{self.path}: {where}: {what}", cure=cure)


def asked_by(
    path: str,
    table: Table,
    known: Collection[str],
    configure: Configure,
    fits: Fits,
    *,
    demanding: bool = False,
) -> Asked:
    """`table`: [matrix] of the file. Raises a UserError with the cure."""
    reader = _Reader(path, frozenset(known) - NOT_OF_A_ROW, configure, fits, demanding)
    _only(reader, "[matrix]", table, OF_THE_FILE)
    rows = table.get("row", [])
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise reader.wrong(
            "[matrix]", "it has no rows", '[[matrix.row]], with backend = "redis" below it'
        )
    shared = table.get("run", {})
    _only(reader, "[matrix.run]", shared, reader.known)
    usual = _seeds(reader, "[matrix]", table.get("seeds", SEEDS))
    found: list[Cell] = []
    left_out: list[str] = []
    for number, row in enumerate(rows, 1):
        made = list(_cells(reader, f"row {number}", shared, row, usual))
        fitting = [cell for cell, refused in made if not refused]
        if not fitting:
            raise reader.wrong(f"row {number}", made[0][1], "correct the row, or take it out")
        found += fitting
        left_out += [f"{cell.id}: {refused}" for cell, refused in made if refused]
    _all_different(reader, found)
    return Asked(tuple(found), _texts(reader, "thresholds", table), tuple(left_out))


def _only(reader: _Reader, where: str, table: Table, known: Iterable[str]) -> None:
    for name in table:
        if name.replace("_", "-") not in {*known}:
            close = get_close_matches(name, [*known], n=3) or sorted(known)
            raise reader.wrong(where, f"no setting {name!r}", f"choose from: {', '.join(close)}")


def _texts(reader: _Reader, name: str, table: Table) -> tuple[str, ...]:
    value = table.get(name, [])
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise reader.wrong(name, "it is no list of texts", f'{name} = ["...", "..."]')
    return tuple(value)


def _seeds(reader: _Reader, where: str, given: object) -> tuple[int, ...]:
    """Of a number as many, from 1 on."""
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return tuple(range(1, given + 1))
    if isinstance(given, list) and given and all(isinstance(n, int) and n >= 0 for n in given):
        return tuple(dict.fromkeys(given))
    raise reader.wrong(where, f"seeds = {given!r}", "seeds = 3, or seeds = [7, 11]")


# --- one row -------------------------------------------------------------------------------------


def _cells(
    reader: _Reader, where: str, shared: Table, row: Table, usual: tuple[int, ...]
) -> Iterator[tuple[Cell, str]]:
    """Each with why it does not fit together; empty: it does."""
    _only(reader, where, row, {*OF_A_ROW, *reader.known})
    expectation, fixed = _expectation(reader, where, row)
    seeds = _seeds(reader, where, row["seeds"]) if "seeds" in row else fixed or usual
    own = {name.replace("_", "-"): value for name, value in row.items() if name not in OF_A_ROW}
    options = {name.replace("_", "-"): value for name, value in shared.items()} | own
    values = [value if isinstance(value, list) else [value] for value in options.values()]
    for choice in product(*values):
        chosen = dict(zip(options, choice, strict=True))
        config = _configured(reader, where, chosen, seeds[0])
        cell = Cell(
            id=_id(config, {name: chosen[name] for name in own}),
            config=config,
            expectation=expectation,
            seeds=seeds,
        )
        yield cell, _refusal(reader, config)


def _configured(reader: _Reader, where: str, chosen: Table, seed: int) -> RunConfig:
    words = [word for name, value in chosen.items() for word in _as_words(name, value)]
    try:
        return reader.configure([*words, "--seed", str(seed)])
    except UserError as error:
        raise reader.wrong(where, error.message, error.cure) from error


def _as_words(name: str, value: object) -> Iterator[str]:
    """As on the command line; a list within a list is an option that is given several times."""
    if isinstance(value, bool):
        yield f"--{name}" if value else f"--no-{name}"
        return
    for each in value if isinstance(value, list) else [value]:
        yield from (f"--{name}", str(each))


def _refusal(reader: _Reader, config: RunConfig) -> str:
    try:
        reader.fits(config)
    except UserError as error:
        return error.message
    return ""


def _id(config: RunConfig, own: Table) -> str:
    """Stable from night to night: it names what the row says, not what others differ in."""
    parts = [config.backend, "+".join(config.nemesis)]
    parts += [str(config.guard)] if config.guard != "none" else []
    parts += [f"{n}={_text(value)}" for n, value in own.items() if n not in NOT_IN_AN_ID]
    return "::".join(parts)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def _all_different(reader: _Reader, cells: Iterable[Cell]) -> None:
    seen: set[str] = set()
    for cell in cells:
        if cell.id in seen:
            raise reader.wrong(cell.id, "two rows ask for it", "take one of them out")
        seen.add(cell.id)


# --- what is expected ----------------------------------------------------------------------------


def _expectation(reader: _Reader, where: str, row: Table) -> tuple[Expectation, tuple[int, ...]]:
    """And the seeds that it names: `of 20`."""
    text, blame = str(row.get("expect", VERDICTS[0])), str(row.get("blame", ""))
    matched = _EXPECTED.fullmatch(text.strip())
    if matched is None or matched["verdict"] not in VERDICTS:
        raise reader.wrong(where, f"expect = {text!r} says nothing known", EXAMPLE)
    share = float(matched["share"] or 100) / 100
    if matched["compare"] and (matched["verdict"] == ANY or share > 1):
        raise reader.wrong(where, f"expect = {text!r} is no share of runs", EXAMPLE)
    findings = _texts(reader, "findings", row)
    for code in findings:
        if code not in CHECKS:
            raise reader.wrong(where, f"no check {code!r}", f"choose from: {', '.join(CHECKS)}")
    if blame and blame not in {str(who) for who in Culprit}:
        raise reader.wrong(where, f"blame = {blame!r}", f"one of {', '.join(map(str, Culprit))}")
    expectation = Expectation(
        verdict=matched["verdict"],
        compare=matched["compare"] or "",
        share=share,
        findings=findings,
        blame=blame,
        demanding=reader.demanding,
    )
    return expectation, tuple(range(1, int(matched["of"] or 0) + 1))
