"""What lockcheck promises, as runs: which lock breaks under what, and which one holds.

`python -m tests.table --runtime docker --seeds 20` runs each row that often and prints the table;
the tests and the nightly job use the same rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Result = dict[str, Any]  # what --json prints
FIRST_VIOLATION_WITHIN_MS = 10_000


@dataclass(frozen=True)
class Row:
    name: str
    options: tuple[str, ...]
    verdict: str
    demands: tuple[Callable[[Result], str], ...]  # each says what is missing, or nothing


def finds(*codes: str) -> Callable[[Result], str]:
    def demand(result: Result) -> str:
        missing = set(codes) - {finding["code"] for finding in result["findings"]}
        return f"not found: {', '.join(sorted(missing))}" if missing else ""

    return demand


def finds_nothing(result: Result) -> str:
    return f"{len(result['findings'])} findings" if result["findings"] else ""


def blames_the_paused_holder(result: Result) -> str:
    blamed = {(f["blame"], (f["fault"] or "")[:5]) for f in result["findings"]}
    return "" if blamed == {("holder", "pause")} else f"blame: {blamed}"


def finds_it_soon(result: Result) -> str:
    first = min((f["at_ms"] for f in result["findings"]), default=float("inf"))
    return "" if first < FIRST_VIOLATION_WITHIN_MS else f"first violation after {first:.0f} ms"


def acquires_often(result: Result) -> str:
    number = result["counts"]["acquisitions"]
    return "" if number >= 200 else f"only {number} acquisitions"


def refuses_stale_writes(result: Result) -> str:
    return "" if result["counts"]["stale_writes_refused"] else "no stale write was refused"


BREAKS = (finds("overlap", "stale-write"), blames_the_paused_holder, finds_it_soon)
PAUSE, NONE = ("--nemesis", "pause"), ("--nemesis", "none")
SHORT = ("--time-limit", "10s")

ROWS = (
    Row("redlock, pause", ("--backend", "redlock", *PAUSE), "violation", BREAKS),
    Row("redis, pause", ("--backend", "redis", *PAUSE), "violation", BREAKS),
    Row(
        "redis-naive, holders outlive the lease",
        (
            *("--backend", "redis-naive", *NONE, "--think", "1500ms", *SHORT),
            "--no-stop-on-violation",
        ),
        "violation",
        (finds("overlap", "foreign-release"),),
    ),
    Row(
        "redis, control",
        ("--backend", "redis", *NONE, *SHORT),
        "ok",
        (finds_nothing, acquires_often),
    ),
    Row(
        "redlock, control",
        ("--backend", "redlock", *NONE, *SHORT),
        "ok",
        (finds_nothing, acquires_often),
    ),
    Row(
        "redis-fenced, guard fence, pause",
        ("--backend", "redis-fenced", "--guard", "fence", *PAUSE, *SHORT),
        "ok",
        (refuses_stale_writes,),
    ),
    Row(
        "redis-fenced, no guard, pause", ("--backend", "redis-fenced", *PAUSE), "violation", BREAKS
    ),
)

EXIT_CODES = {"ok": 0, "violation": 1, "unknown": 3}


def try_row(row: Row, runtime: str, seed: int, out: Path) -> list[str]:
    """Runs it; what is not as promised, or nothing."""
    command = [sys.executable, "-m", "lockcheck", "run", "--json", "--out", str(out)]
    command += ["--runtime", runtime, "--seed", str(seed), *row.options]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    if said.returncode not in EXIT_CODES.values():
        return [f"exit {said.returncode}: {said.stderr.strip()[-2000:]}"]
    result = json.loads(said.stdout)
    wrong = [text for demand in row.demands if (text := demand(result))]
    if result["verdict"] != row.verdict:
        wrong.append(f"verdict {result['verdict']} {result['doubts']}")
    if said.returncode != EXIT_CODES[result["verdict"]]:
        wrong.append(f"exit {said.returncode} for {result['verdict']}")
    return [f"{text} ({result['report']})" for text in wrong]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", default="local", choices=["local", "docker"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=None, help="keeps the runs there")
    arguments = parser.parse_args()
    out = arguments.out or Path(tempfile.mkdtemp(prefix="lockcheck-table-"))
    failed = 0
    for row in ROWS:
        as_promised = 0
        for seed in range(1, arguments.seeds + 1):
            wrong = try_row(row, arguments.runtime, seed, out)
            as_promised += not wrong
            for text in wrong:
                print(f"    seed {seed}: {text}", flush=True)
        failed += arguments.seeds - as_promised
        print(f"{as_promised:>3} of {arguments.seeds}  {row.verdict:<10} {row.name}", flush=True)
    print(f"{len(ROWS) * arguments.seeds - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
