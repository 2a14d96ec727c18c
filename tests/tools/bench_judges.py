"""How long it takes to read and judge long histories, and how that grows. A part of `make bench`.

Each measurement is a process of its own, so that its memory is its own. The yardstick is what it
takes to decode the same lines one by one with msgspec, and do nothing with them.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from itertools import islice, pairwise
from pathlib import Path

from lockcheck.check.collecting import not_collecting
from lockcheck.check.recheck import recheck
from lockcheck.checker import judge_scan
from lockcheck.checker.linearizability import endless
from lockcheck.cli.terminal import print_verdict
from lockcheck.formats import ReadOptions
from lockcheck.history import read_history
from lockcheck.history.event import decode_event
from lockcheck.history.scan import scan
from lockcheck.results.report import render
from tests.long_histories import crowded, lock, register, rows, run, since_1970, spans, write

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
SEARCHED = (1_000, 10_000, 100_000)
LINES_OF_A_RUN = (10_000, 100_000, 1_000_000)
OPERATIONS_PER_LINE = 0.39  # of a run: the others are answers, and what the storage remembers
ROWS = (10_000, 100_000, 1_000_000)
FINDINGS = (1_000, 10_000, 100_000)
YARD = 200_000  # lines that are decoded for the yardstick

KINDS: dict[str, Callable[[int], Iterator[str]]] = {
    "lock": lock,
    "register": register,
    "cas-register": lambda operations: register(operations, cas=True),
}
SEARCHES: dict[str, Callable[[int], Iterator[str]]] = {
    "5 clients": lambda operations: register(operations, values=5, clients=5),
    "20 clients": lambda operations: register(operations, values=5),
}


def measure(path: Path) -> None:
    """Reads and judges one file, and says how long that took and how much memory."""
    began = time.perf_counter()
    scanned = scan(lambda: path.open("rb"), path.name)
    read = time.perf_counter()
    judgement = judge_scan(scanned) if scanned else None
    ended = time.perf_counter()
    if judgement is None:  # without the compiled reader
        from lockcheck.checker import judge

        judgement = judge(read_history(path))
        ended = time.perf_counter()
    told = {
        "verdict": judgement.verdict.value,
        "read": read - began,
        "seconds": ended - began,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "engines": sorted({definition.engine for definition in judgement.definitions}),
    }
    print(json.dumps(told))


def measure_command(path: Path) -> None:
    """Reads and judges one file of any format as `lockcheck check` does, and tells of it."""
    began = time.perf_counter()
    with not_collecting():
        checked = recheck(str(path), None, asked=ReadOptions(), patience=endless, out=path.parent)
        judged = time.perf_counter()
        with redirect_stdout(io.StringIO()):
            print_verdict(checked.narrative, None, checked.facts)
        page = render(checked.narrative, checked.facts)
        path.with_suffix(".html").write_text(page)
    told = {
        "verdict": checked.judgement.verdict.value,
        "findings": len(checked.judgement.findings),
        "judged": judged - began,
        "told": time.perf_counter() - judged,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(told))


def measured_command(path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.tools.bench_judges", "--measure-command", str(path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, float] = json.loads(said.stdout)
    return told


def bench_command(
    kind: str, sizes: tuple[int, ...], lines: Callable[[int], Iterator[str]], path: Path
) -> None:
    judged: list[tuple[int, float]] = []
    told: list[tuple[int, float]] = []
    for size in sizes:
        write(path, lines(size))
        took = measured_command(path)
        judged.append((size, took["judged"]))
        told.append((size, took["told"]))
        print(
            f"{kind:>14} {size:>12,} judged in {took['judged']:7.3f} s{_exponent(judged)},"
            f" {took['findings']:,} findings told and drawn in {took['told']:7.3f} s"
            f"{_exponent(told)} {took['mb']:8.0f} MB  {took['verdict']}",
            flush=True,
        )


def measured(path: Path, *, pure: bool = False) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.tools.bench_judges", "--measure", str(path)]
    environment = {**os.environ, "LOCKCHECK_PURE": "1"} if pure else None
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    told: dict[str, float] = json.loads(said.stdout)
    return told


def yardstick(path: Path) -> float:
    """Seconds a line."""
    with path.open("rb") as lines:
        some = list(islice(lines, YARD))
    began = time.perf_counter()
    for line in some:
        decode_event(line)
    return (time.perf_counter() - began) / len(some)


def bench(kind: str, sizes: tuple[int, ...], folder: Path) -> None:
    took: list[tuple[int, float]] = []
    for size in sizes:
        path = folder / f"{kind}-{size}.jsonl"
        write(path, KINDS[kind](size))
        told, yard = measured(path), 2 * size * yardstick(path)
        path.unlink()
        took.append((size, told["seconds"]))
        print(
            f"{kind:>14} {size:>12,} {told['seconds']:8.3f} s {told['seconds'] / yard:6.2f} x"
            f" {told['read'] / told['seconds']:6.0%} {told['mb']:8.0f} MB  {told['verdict']}"
            f"{_exponent(took)}",
            flush=True,
        )


def _exponent(took: list[tuple[int, float]]) -> str:
    """Of the cost between the last two sizes: 1 is linear."""
    if len(took) < 2:
        return ""
    (size, seconds), (more, longer) = list(pairwise(took))[-1]
    return f"  n^{math.log(longer / seconds) / math.log(more / size):.2f}"


def bench_search(kind: str, folder: Path) -> None:
    for size in SEARCHED:
        path = folder / f"search-{size}.jsonl"
        write(path, SEARCHES[kind](size))
        told, slow = measured(path), measured(path, pure=True)
        path.unlink()
        slower = slow["seconds"] / told["seconds"]
        print(
            f"{kind:>14} {size:>12,} {told['seconds']:8.3f} s {told['mb']:6.0f} MB"
            f"  {told['verdict']}; without the compiled part {slower:.1f} x as long",
            flush=True,
        )


def _lines_of_a_run(lines: int) -> Iterator[str]:
    return run(int(OPERATIONS_PER_LINE * lines))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments.add_argument("--most", type=int, default=SIZES[-1], help="the longest history")
    arguments.add_argument("--measure-command", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.measure:
        measure(given.measure)
        return
    if given.measure_command:
        measure_command(given.measure_command)
        return
    sizes = tuple(size for size in SIZES if size <= given.most)
    with tempfile.TemporaryDirectory() as folder:
        print(
            "Read and judged: 20 clients, 1 % indeterminate (x: decoding the same lines; % reading)"
        )
        for kind in KINDS:
            bench(kind, sizes, Path(folder))
        print("As a command: lines of a run of lockcheck with pauses and a storage; logs of a day")
        at = Path(folder)
        sized = [size for size in LINES_OF_A_RUN if size <= given.most]
        bench_command("run", tuple(sized), _lines_of_a_run, at / "run.jsonl")
        some = tuple(s for s in ROWS if s <= given.most)
        bench_command("csv", some, rows, at / "rows.csv")
        bench_command("spans", some, spans, at / "spans.json")
        bench_command("since 1970", some, since_1970, at / "since.jsonl")
        print("Findings, nearly as many: an overlap for each two rows")
        bench_command("overlaps", FINDINGS, lambda n: crowded(2 * n), at / "crowded.csv")
        print("Searched: a register that is written five different values")
        for kind in SEARCHES:
            bench_search(kind, Path(folder))


if __name__ == "__main__":
    main()
