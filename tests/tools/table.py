"""What lockcheck promises, as runs: how each lock fares under what, as its backend expects it.

`python -m tests.tools.table --runtime docker --seeds 20` runs each row that often and prints the
table; the nightly job does, and `make test` runs a short selection (`--short`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from lockcheck.backends import BACKENDS, Backend
from lockcheck.backends.expected import LIMIT, Expected, without_limit
from lockcheck.checker.finding import Verdict
from lockcheck.cli.commands import run_command
from lockcheck.cli.run_options import config_from
from lockcheck.nemesis import NO_FAULT
from lockcheck.run.plan import RunPlan
from lockcheck.run.resolve import planned
from lockcheck.servers.kind import Kind
from lockcheck.storage.base import Guard
from tests.demands import demands_of
from tests.running import lockcheck, why_not

NONE = Guard.NONE
SHORT_CONTROL = "2s"
RUN_TIMEOUT_S = 240
EXIT_CODES = {str(verdict): verdict.exit_code for verdict in Verdict}


@dataclass(frozen=True)
class Row:
    backend: str
    expected: Expected

    @property
    def options(self) -> tuple[str, ...]:
        guard = ("--guard", self.expected.guard) if self.expected.guard != NONE else ()
        fault = ("--nemesis", self.expected.nemesis)
        return ("--backend", self.backend, *fault, *guard, *self.expected.options)

    @property
    def name(self) -> str:
        return f"{self.backend}, {self.expected.words()}"

    @property
    def control(self) -> bool:
        return self.expected.nemesis == NO_FAULT

    @property
    def verdict(self) -> str:
        return self.expected.verdict

    def plan(self) -> RunPlan:
        with run_command.make_context("run", [*self.options, "--seed", "1"]) as context:
            return planned(config_from(context, context.params, None))


ROWS = tuple(Row(name, each) for name, lock in BACKENDS.items() for each in lock.expected)


# --- the short selection -------------------------------------------------------------------------


def short(rows: Iterable[Row], runtime: str) -> list[Row]:
    """What `make test` runs. In `local`: each lock without a fault, for a few seconds, and for each
    kind of server the first row that breaks. In `docker`: for each kind of server the first row
    with a fault that it stands, behind a guard if there is one; but not where its image stands on
    another Debian than the usual, which takes minutes to make."""
    rows = list(rows)
    if runtime == "docker":
        usual = (row for row in rows if not _has_a_suite(row))
        stands = (row for row in usual if row.verdict == "ok" and not row.control)
        return _first_of_each_kind(sorted(stands, key=lambda row: row.expected.guard == NONE))
    controls = {row.backend: row for row in reversed(rows) if row.control}
    breaks = (row for row in rows if row.verdict == "violation" and not row.control)
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
    return any(kind.server.suite for kind in row.plan().kinds)


def _shortened(row: Row) -> Row:
    """A control run that is to be quiet; what has to break takes its time."""
    if row.verdict != "ok":
        return row
    options = (*without_limit(row.expected.options), LIMIT, SHORT_CONTROL)
    return replace(row, expected=replace(row.expected, options=options))


# --- running -------------------------------------------------------------------------------------


def try_row(row: Row, runtime: str, seed: int, out: Path) -> list[str]:
    """Runs it; what is not as promised, or nothing."""
    options = ("--runtime", runtime, "--seed", str(seed), *row.options)
    try:
        said = lockcheck("run", "--json", "--out", str(out), *options, timeout_s=RUN_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return [f"did not end within {RUN_TIMEOUT_S} s"]
    if said.returncode not in EXIT_CODES.values():
        return [f"exit {said.returncode}: {said.stderr.strip()[-2000:]}"]
    result = json.loads(said.stdout)
    wrong = [text for demand in demands_of(row.expected, row.plan()) if (text := demand(result))]
    if said.returncode != EXIT_CODES[result["verdict"]]:
        wrong.append(f"exit {said.returncode} for {result['verdict']}")
    return [f"{text} ({result['report']})" for text in wrong]


def can_run(rows: Iterable[Row], runtime: str) -> Iterator[Row]:
    """Those whose servers can be had on this host; says why the others are left out."""
    reasons: dict[tuple[Kind, ...], str] = {}
    skipped: dict[str, str] = {}
    for row in rows:
        kinds = row.plan().kinds
        if kinds not in reasons:
            reasons[kinds] = why_not(runtime, *kinds)
        if not reasons[kinds]:
            yield row
        elif row.backend not in skipped:
            skipped[row.backend] = reasons[kinds]
            print(f"left out: {row.backend}: {reasons[kinds]}", flush=True)


@dataclass(frozen=True)
class Tried:
    row: Row
    seed: int
    wrong: list[str]
    took_s: float


def try_all(rows: Sequence[Row], runtime: str, seeds: int, out: Path, jobs: int) -> Iterator[Tried]:
    """As they end; each seed of all rows before the next one."""
    turns = [(row, seed) for seed in range(1, seeds + 1) for row in rows]

    def turn(row: Row, seed: int) -> Tried:
        began = time.monotonic()
        wrong = try_row(row, runtime, seed, out)
        return Tried(row, seed, wrong, time.monotonic() - began)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(turn, *zip(*turns, strict=True)) if turns else ()


def main() -> int:
    arguments = _arguments()
    runtime, jobs = arguments.runtime, arguments.jobs
    out = arguments.out or Path(tempfile.mkdtemp(prefix="lockcheck-table-"))
    unknown = {*arguments.backend} - {*BACKENDS}
    if unknown:
        print(f"no such backend: {', '.join(sorted(unknown))}")
        return 2
    rows = [
        row
        for row in ROWS
        if row.backend in (arguments.backend or BACKENDS)
        and row.expected.nemesis.startswith(arguments.nemesis)
        and not (arguments.faults and row.control)
    ]
    rows = list(can_run(short(rows, runtime) if arguments.short else rows, runtime))
    number = len(rows) * arguments.seeds
    by_row: dict[Row, list[Tried]] = defaultdict(list)
    for done, tried in enumerate(try_all(rows, runtime, arguments.seeds, out, jobs), 1):
        by_row[tried.row].append(tried)
        mark = "no" if tried.wrong else "ok"
        print(f"{done:>4}/{number} {mark} {tried.took_s:5.1f} s  {tried.row.name}", flush=True)
        for text in tried.wrong:
            print(f"          seed {tried.seed}: {text}", flush=True)
    return _print_table(by_row)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", action="append", default=[], help="this lock; repeatable")
    parser.add_argument("--runtime", default="local", choices=["local", "docker"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--faults", action="store_true", help="leave out runs without a fault")
    parser.add_argument("--nemesis", default="", help="those whose fault begins so")
    parser.add_argument("--short", action="store_true", help="what `make test` runs of it")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--out", type=Path, default=None, help="keeps the runs there")
    return parser.parse_args()


def _print_table(by_row: dict[Row, list[Tried]]) -> int:
    print("\nas expected    mean s  verdict    row")
    for row, tries in by_row.items():
        right = sum(not tried.wrong for tried in tries)
        mean_s = sum(tried.took_s for tried in tries) / len(tries)
        mark = "" if right == len(tries) else "  <--"
        print(f"{right:>5} of {len(tries):<5}{mean_s:>8.1f}  {row.verdict:<10} {row.name}{mark}")
    tried = [each for tries in by_row.values() for each in tries]
    failed = sum(bool(each.wrong) for each in tried)
    took_s = sum(each.took_s for each in tried)
    print(f"{len(tried) - failed} passed, {failed} failed; {took_s:,.0f} s of runs")
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
