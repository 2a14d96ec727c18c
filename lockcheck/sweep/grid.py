"""What a sweep runs: a cell for each lease and each pause of a holder, and one for each lease in
which holders crash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import log10
from statistics import mean

import msgspec

from lockcheck.config import RunConfig
from lockcheck.durations import Duration, DurationRange, duration_words
from lockcheck.errors import UserError
from lockcheck.matrix.folder import Plan
from lockcheck.matrix.model import ANY, Cell, Expectation
from lockcheck.nemesis import parse_nemesis
from lockcheck.nemesis.fitting import GAP_MS
from lockcheck.run.resolve import planned

STEPS = "6x5"
SEEDS = 3
CRASHED = "kill:holder,restart=1s"
STRIKES = 2  # in each run, if its holders are there
SHORTEST_MS = 3_000
TO_STRIKE_MS = GAP_MS[1] + 300  # the gap before a fault, and the hunt for a holder
TURNS = 12  # of work under the lock, one after the other: enough for a verdict
DIGITS = 2  # of a value between the ends of a range
_STEPS = re.compile(r"([1-9]\d?)x([1-9]\d?)")


@dataclass(frozen=True, slots=True)
class Grid:
    ttls: tuple[int, ...]  # in milliseconds
    pauses: tuple[int, ...]


def grid_of(ttl: Duration, pause: Duration, steps: str, ttl_step_ms: int = 1) -> Grid:
    """`steps`: as in 6x5, so many leases and so many pauses. Raises a UserError."""
    matched = _STEPS.fullmatch(steps)
    if matched is None:
        raise UserError(f"--steps {steps} is no grid", cure=f"as in --steps {STEPS}")
    ttls = (max(1, round(ms / ttl_step_ms)) * ttl_step_ms for ms in spaced(ttl, int(matched[1])))
    return Grid(tuple(dict.fromkeys(ttls)), spaced(pause, int(matched[2])))


def spaced(durations: Duration, number: int) -> tuple[int, ...]:
    """From end to end, each as much longer than the one before; in round numbers."""
    if not isinstance(durations, DurationRange):
        return (durations,)
    low, high = durations.low_ms, durations.high_ms
    if number == 1:
        return (high,)
    inner = (low * (high / low) ** (n / (number - 1)) for n in range(1, number - 1))
    return tuple(dict.fromkeys([low, *map(_rounded, inner), high]))


def _rounded(ms: float) -> int:
    """From a millisecond on."""
    return int(round(ms, min(0, DIGITS - 1 - int(log10(ms)))))


def plan_of(grid: Grid, asked: RunConfig, seeds: int, *, fixed_time: bool) -> Plan:
    """`fixed_time`: each run is as long as `asked` says, and not as long as its faults need. Raises
    a UserError if nothing of it fits together."""
    cells, refused = list[Cell](), dict[str, UserError]()
    for cell in _cells(grid, asked, tuple(range(1, seeds + 1)), fixed_time=fixed_time):
        try:
            planned(cell.config)
        except UserError as error:
            refused[cell.id] = error
        else:
            cells.append(cell)
    if not any(pause_ms(cell.config) for cell in cells):
        raise next(iter(refused.values()))
    left_out = (f"{name}: {error.message}" for name, error in refused.items())
    return Plan(source=f"a sweep of {asked.backend}", cells=tuple(cells), left_out=tuple(left_out))


def _cells(
    grid: Grid, asked: RunConfig, seeds: tuple[int, ...], *, fixed_time: bool
) -> Iterator[Cell]:
    for ttl_ms in grid.ttls:
        for ms in grid.pauses:
            least_ms = STRIKES * (TO_STRIKE_MS + ms) + round(TURNS * mean(asked.work_ms))
            limit_ms = asked.time_limit_ms if fixed_time else max(SHORTEST_MS, least_ms)
            yield _cell(asked, ttl_ms, f"pause:holder,for={duration_words(ms)}", limit_ms, seeds)
        gone_ms = ttl_ms * asked.lock.promises.lapses_after
        least_ms = (STRIKES - 1) * round(gone_ms) + STRIKES * TO_STRIKE_MS + SHORTEST_MS
        limit_ms = asked.time_limit_ms if fixed_time else least_ms
        yield _cell(asked, ttl_ms, CRASHED, limit_ms, seeds[:1])


def _cell(
    asked: RunConfig, ttl_ms: int, nemesis: str, limit_ms: int, seeds: tuple[int, ...]
) -> Cell:
    config = msgspec.structs.replace(
        asked,
        nemesis=(nemesis,),
        ttl_ms=ttl_ms,
        time_limit_ms=limit_ms,
        seed=seeds[0],
        out="results",  # of the campaign: where it is kept is no part of the plan
    )
    guard = [str(asked.guard)] if asked.guard != "none" else []
    parts = [asked.backend, nemesis, *guard, f"ttl={duration_words(ttl_ms)}"]
    return Cell(
        id="::".join(parts), config=config, expectation=Expectation(verdict=ANY), seeds=seeds
    )


def pause_ms(config: RunConfig) -> int | None:
    """Of a cell of a sweep; None: its holders crash."""
    ((step,),) = map(parse_nemesis, config.nemesis)
    return step.for_ms if step.kind.name == "pause" else None
