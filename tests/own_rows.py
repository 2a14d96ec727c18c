"""What lockcheck expects of its own locks, as cells; and the short selection for `make test`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from lockcheck.backends import BACKENDS, Backend
from lockcheck.backends.expected import LIMIT, Expected, without_limit
from lockcheck.cli.campaign.commands import matrix_command
from lockcheck.cli.campaign.conduct import asked_in
from lockcheck.matrix.folder import Folder, Plan
from lockcheck.matrix.judging import deviations, standing_of
from lockcheck.matrix.model import Cell, Standing
from lockcheck.matrix.own import SOURCE, row_of
from lockcheck.nemesis import NO_FAULT
from lockcheck.run.plan import RunPlan
from lockcheck.run.resolve import planned
from lockcheck.storage.base import Guard
from tests.running import lockcheck

SHORT_CONTROL = "2s"


@dataclass(frozen=True)
class Row:
    backend: str
    expected: Expected

    @property
    def name(self) -> str:
        return f"{self.backend}, {self.expected.words()}"

    @property
    def control(self) -> bool:
        return self.expected.nemesis == NO_FAULT

    def cell(self, runtime: str = "local") -> Cell:
        table = {
            "seeds": 1,
            "run": {"runtime": runtime},
            "row": [row_of(self.backend, self.expected)],
        }
        with matrix_command.make_context("matrix", ["--own"]) as context:
            return asked_in(context, SOURCE, table, own=True).cells[0]

    def plan(self) -> RunPlan:
        return planned(self.cell().config)


ROWS = tuple(Row(name, each) for name, lock in BACKENDS.items() for each in lock.expected)


def short(rows: Iterable[Row], runtime: str) -> list[Row]:
    """In `local`: each lock without a fault, for a few seconds, and for each kind of server the
    first row that breaks. In `docker`: for each kind of server the first row with a fault that it
    stands, behind a guard if there is one; but not where its image stands on another Debian than
    the usual, which takes minutes to make."""
    rows = list(rows)
    if runtime == "docker":
        usual = (row for row in rows if not _has_a_suite(row))
        stands = (row for row in usual if row.expected.verdict == "ok" and not row.control)
        return _first_of_each_kind(sorted(stands, key=lambda row: row.expected.guard == Guard.NONE))
    controls = {row.backend: row for row in reversed(rows) if row.control}
    breaks = (row for row in rows if row.expected.verdict == "violation" and not row.control)
    return [*map(_shortened, reversed(controls.values())), *_first_of_each_kind(breaks)]


def _first_of_each_kind(rows: Iterable[Row]) -> list[Row]:
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(_kind(BACKENDS[row.backend]), row)
    return list(first.values())


def _kind(backend: Backend) -> str:
    """The kind of server that its clients speak to."""
    return backend.contact or str(backend.servers[0].kind)


def _has_a_suite(row: Row) -> bool:
    return any(spec.kind.server.suite for spec in BACKENDS[row.backend].servers if spec.kind)


def _shortened(row: Row) -> Row:
    """A control run that is to be quiet; what has to break takes its time."""
    if row.expected.verdict != "ok":
        return row
    options = (*without_limit(row.expected.options), LIMIT, SHORT_CONTROL)
    return replace(row, expected=replace(row.expected, options=options))


def tried(row: Row, runtime: str, out: Path) -> list[str]:
    """Carries it out as a campaign does; what is not as expected, or nothing."""
    cell = row.cell(runtime)
    folder = Folder.begin(out, Plan(source=SOURCE, cells=(cell,)))
    [trial] = folder.plan().trials
    plan = str(folder.path / "plan.ndjson")
    done = lockcheck("trial", plan, "--id", trial.id, "--out", str(folder.path))
    result = folder.result(trial)
    if result is None:
        return [f"exit {done.returncode}: {done.stderr.strip()[-2000:]}"]
    standing = standing_of(cell, result)
    if standing is Standing.AS_EXPECTED:
        return []
    why = [*deviations(cell, result), result.problem, *result.doubts, result.headline]
    return [f"{standing}: {'; '.join(filter(None, why))} ({folder.path / result.report})"]
