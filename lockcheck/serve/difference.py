"""What differs between two entries of the list: two runs by their records, two campaigns by their
cells and trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from lockcheck.errors import UserError
from lockcheck.matrix.comparing import compared
from lockcheck.runs.store import RECORD_FILE
from lockcheck.serve.entries import Entry, Kind, recorded
from lockcheck.serve.places import read_below

_MAPS = {"counts": "Counts", "doubts": "Doubts", "config": "Options", "versions": "Versions"}
_OUTCOME = ("verdict", "exit_code", "took_ms", "problem")
ABSENT = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Part:
    """Rows for runs, lines for campaigns."""

    title: str
    rows: tuple[Row, ...] = ()
    lines: tuple[str, ...] = ()


def difference(root: Path, before: Entry, after: Entry) -> list[Part]:
    """Raises UserError where they cannot be compared, or not be read."""
    campaigns = [entry.kind is Kind.CAMPAIGN for entry in (before, after)]
    if campaigns[0] != campaigns[1]:
        raise UserError("a run cannot be compared with a campaign")
    if all(campaigns):
        return [*_of_campaigns(root, before, after)]
    one, other = (_record(root, entry) for entry in (before, after))
    return [part for part in _of_runs(one, other) if part.rows]


def _record(root: Path, entry: Entry) -> dict[str, Any]:
    try:
        read = msgspec.json.decode(read_below(root, (*entry.parts, RECORD_FILE)), type=dict)
    except (OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UserError(f"{entry.name}: {RECORD_FILE} cannot be read: {error}") from error
    return read


def _of_runs(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Part]:
    outcome = [{name: each.get(name) for name in _OUTCOME} for each in (before, after)]
    yield Part("Outcome", _rows(*outcome))
    yield Part("Findings", _rows(_findings(before), _findings(after)))
    for field, title in _MAPS.items():
        yield Part(title, _rows(_map(before.get(field)), _map(after.get(field))))


def _findings(record: Mapping[str, Any]) -> dict[str, int]:
    """By what makes them different ones, as `record.json` has them."""
    found: dict[str, int] = {}
    tallies = record.get("findings")
    for tally in tallies if isinstance(tallies, list) else ():
        each = _map(tally)
        name = f"{each.get('code')} ({each.get('effect')}, by the {each.get('blame')})"
        number = each.get("number")
        found[name] = found.get(name, 0) + (number if isinstance(number, int) else 0)
    return found


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Row, ...]:
    names = dict.fromkeys([*before, *after])
    rows = (Row(name, _shown(before.get(name)), _shown(after.get(name))) for name in names)
    return tuple(row for row in rows if row.before != row.after)


def _shown(value: object) -> str:
    if value is None or value in ("", []):
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _of_campaigns(root: Path, before: Entry, after: Entry) -> Iterator[Part]:
    try:
        one, other = (recorded(root, entry.parts).outcomes() for entry in (before, after))
        moved = compared(one, other)
    except Exception as error:  # a stranger's plan can raise anything
        raise UserError(f"the campaigns cannot be compared: {error}") from error
    for title, entries in moved.parts():
        yield Part(title, lines=tuple(map(str, entries)))
