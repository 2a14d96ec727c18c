"""What a run of one of lockcheck's own locks has to show besides the verdict: that what was asked
for has happened, and often enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lockcheck.durations import longest_ms
from lockcheck.matrix.model import Expectation
from lockcheck.run.plan import RunPlan
from lockcheck.storage.base import Guard
from lockcheck.workloads.base import REENTRY, SHARING

Result = dict[str, Any]  # what --json prints
Demand = Callable[[Result], str]  # says what is missing, or nothing

FIRST_VIOLATION_WITHIN_MS = 10_000
SLOWNESS_MS = 1500  # of a busy machine, and what a system itself needs
TOGETHER = 2  # readers, or levels
NESTED_UPDATES = 3  # under one acquisition, about
ENOUGH, ENOUGH_IN_MS = 100, 10_000  # acquisitions; fewer in a shorter run
ENOUGH_AMID_FAULTS = 30  # elections, and sessions that run out, take most of the time


def demands_of(expected: Expectation, plan: RunPlan) -> Iterator[Demand]:
    """Where its verdict came as expected."""
    config, promises = plan.config, plan.lock.promises
    kinds = tuple(step.kind.name for sequence in plan.nemesis for step in sequence)
    if expected.blame == "holder" and kinds:
        yield blames_for(kinds)
    if kinds:
        yield proves_its_faults
    if expected.verdict == "violation" and kinds == ("pause",):
        yield finds_it_soon
    if expected.verdict != "ok":
        return
    if not plan.is_guarded:  # else overlaps are shown, and do no harm
        yield finds_nothing
    yield from uses(plan)
    if not plan.terms.at_holders:
        enough = ENOUGH_AMID_FAULTS if kinds else ENOUGH
        updates = NESTED_UPDATES if plan.workload.needs is REENTRY else 1
        yield acquires(fewest(enough, config.time_limit_ms, longest_ms(config.think_ms) * updates))
    if config.guard is Guard.FENCE and {"pause", "partition"} & {*kinds}:
        yield refuses_stale_writes
    if "kill:holder" in config.nemesis and promises.excludes:
        yield is_free_again_within(config.ttl_ms * promises.lapses_after + SLOWNESS_MS)


def uses(plan: RunPlan) -> Iterator[Demand]:
    """What the lock is for was done, and not only allowed. Faults may leave no time for it."""
    if plan.terms.faults:
        return
    needs, permits = plan.workload.needs, plan.lock.promises.permits
    if needs is SHARING:
        yield counts("shared_together", TOGETHER, plan.config.clients)
    if permits > 1:
        yield counts("held_together", permits, permits)
    if needs is REENTRY:
        yield counts("entered_deepest", TOGETHER)


def counts(name: str, least: int, most: int | None = None) -> Demand:
    def demand(result: Result) -> str:
        number = result["counts"][name]
        fits = least <= number and (most is None or number <= most)
        return "" if fits else f"{name} is {number}"

    return demand


def fewest(enough: int, time_limit_ms: int, think_ms: int) -> int:
    """No more than fit into a third of the time if one follows the other."""
    within_ms = min(time_limit_ms, ENOUGH_IN_MS)
    return min(enough * within_ms // ENOUGH_IN_MS, time_limit_ms // (3 * max(think_ms, 1)))


def blames_for(kinds: tuple[str, ...]) -> Demand:
    """The holder, because of the fault that struck it."""

    def demand(result: Result) -> str:
        faults = {f["fault"] or "" for f in result["findings"] if f["blame"] == "holder"}
        other = sorted(fault for fault in faults if not fault.startswith(kinds))
        return f"the holder is to blame under {other}" if other else ""

    return demand


def finds_nothing(result: Result) -> str:
    return f"{len(result['findings'])} findings" if result["findings"] else ""


def proves_its_faults(result: Result) -> str:
    return "" if result["counts"]["faults"] else "no fault was proven"


def finds_it_soon(result: Result) -> str:
    first = min((f["at_ms"] for f in result["findings"]), default=float("inf"))
    return "" if first < FIRST_VIOLATION_WITHIN_MS else f"first violation after {first:.0f} ms"


def acquires(enough: int) -> Demand:
    def demand(result: Result) -> str:
        number = result["counts"]["acquisitions"]
        return "" if number >= enough else f"only {number} acquisitions of {enough}"

    return demand


def refuses_stale_writes(result: Result) -> str:
    return "" if result["counts"]["stale_writes_refused"] else "no stale write was refused"


def is_free_again_within(limit_ms: float) -> Demand:
    """Within the lease or the session's timeout, and what the system itself needs."""

    def demand(result: Result) -> str:
        freed = result["freed"]
        late = [each for each in freed if (each["after_ms"] or 0) > limit_ms]
        if not any(each["after_ms"] is not None for each in freed):
            return "no holder was ended whose lock was granted again"
        return f"free again later than {limit_ms:.0f} ms: {late}" if late else ""

    return demand
