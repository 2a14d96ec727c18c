"""Sweeps made by hand: a letter a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockcheck.checker.finding import Verdict
from lockcheck.config import RunConfig
from lockcheck.durations import DurationRange
from lockcheck.matrix.folder import Plan
from lockcheck.matrix.model import CellOutcome, Result
from lockcheck.sweep.grid import Grid, pause_ms, plan_of
from lockcheck.sweep.surface import Surface

VERDICTS = {"o": Verdict.OK, "x": Verdict.VIOLATION, "?": Verdict.UNKNOWN, "!": None}
REDIS = RunConfig(backend="redis", seed=1, think_ms=DurationRange(50, 300))


def plan(grid: Grid, asked: RunConfig = REDIS, seeds: int = 2) -> Plan:
    return plan_of(grid, asked, seeds, fixed_time=False)


def outcomes(
    pauses: tuple[int, ...],
    rows: Mapping[int, str],
    freed: Mapping[int, tuple[float, ...]] | None = None,
    **given: Any,
) -> list[CellOutcome]:
    """`rows`: of each lease what came in the runs of each pause, as in "oo ox xx"."""
    made: list[CellOutcome] = []
    for cell in plan(Grid((*rows,), pauses)).cells:
        ttl_ms, ms = cell.config.ttl_ms, pause_ms(cell.config)
        came = rows[ttl_ms].split()[pauses.index(ms)] if ms else "o"
        crashes = () if ms else (freed or {}).get(ttl_ms, ())
        results = [
            Result(
                trial=f"{cell.id}[{seed}]",
                cell=cell.id,
                seed=seed,
                verdict=VERDICTS[letter],
                exit_code=0,
                seconds=1.0,
                freed_ms=crashes,
                **given,
            )
            for seed, letter in enumerate(came.replace("-", ""), 1)
        ]
        made.append(CellOutcome(cell, results))
    return made


def surface(*given: Any, **more: Any) -> Surface:
    return Surface.of(outcomes(*given, **more))
