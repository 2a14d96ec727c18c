"""Ten conditions that a lock meets in its life, each a run of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from lockcheck.checker.finding import Culprit, Verdict
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.nemesis import NO_FAULT
from lockcheck.nemesis.fitting import check_machine
from lockcheck.run.execute import RunOutcome, execute
from lockcheck.run.notes import Watcher, silent
from lockcheck.run.resolve import planned
from lockcheck.runs.record import Tally

SHORT_MS, USUAL_MS = 6_000, 10_000  # of runs without a fault, and with one
LEASES = 8  # a run with a fault is no shorter than so many
CROWD = 10
TURNS = 12  # of long work, one after the other: enough to tell
LONG_WORK = 1.5  # leases


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    meaning: str
    nemesis: str = NO_FAULT
    clients: int = 0  # 0: as many as were asked for
    work: float = 0  # under the lock, in leases; 0: as short as was asked for

    def config(self, asked: RunConfig) -> RunConfig:
        shortest_ms = SHORT_MS if self.nemesis == NO_FAULT and not self.work else USUAL_MS
        work_ms = round(self.work * asked.ttl_ms)
        return msgspec.structs.replace(
            asked,
            nemesis=(self.nemesis,),
            clients=max(self.clients, asked.clients),
            think_ms=work_ms or asked.think_ms,
            time_limit_ms=max(shortest_ms, LEASES * asked.ttl_ms, TURNS * work_ms),
        )


CONDITIONS = {
    each.name: each
    for each in (
        Condition("crowd", "no fault, many clients at once", clients=CROWD),
        Condition("long-work", "no fault, work that takes longer than the lease", work=LONG_WORK),
        Condition("pause", "its holder stands still, about to write", "pause"),
        Condition(
            "late-release", "its holder stands still, about to release", "pause:when=release"
        ),
        Condition("cut-off", "its holder is cut off from the servers", "partition"),
        Condition("lossy", "half of what its holder sends is lost", "slow:holder,loss=50"),
        Condition("dead-holder", "its holder is killed", "kill:holder"),
        Condition("restart", "a server is killed, and comes back", "kill:server"),
        Condition(
            "lone-server", "a server is cut off from all others", "partition:server,from=all"
        ),
        Condition("clock", "a server's clock jumps by 30 s", "clock"),
    )
}


@dataclass(frozen=True, slots=True)
class Trial:
    condition: Condition
    config: RunConfig
    outcome: RunOutcome | None = None
    refused: str = ""  # why it cannot be run here

    @property
    def mark(self) -> str:
        """The verdict, or why there is none."""
        if self.outcome is None:
            return "not run"
        if self.outcome.interrupted:
            return "cut short"
        return "failed" if self.outcome.error else str(self.outcome.judgement.verdict)

    def tallies(self) -> tuple[Tally, ...]:
        """What was found and is a violation."""
        found = self.outcome.record.findings if self.outcome else ()
        return tuple(each for each in found if each.effect is Verdict.VIOLATION)

    def culprits(self) -> tuple[Culprit, ...]:
        return tuple(dict.fromkeys(tally.blame for tally in self.tallies()))


def trials(asked: RunConfig, names: Iterable[str] = CONDITIONS) -> list[Trial]:
    """Those still to be run, and those that this lock or host refuses."""
    return [trial(CONDITIONS[name], asked) for name in names]


def trial(condition: Condition, asked: RunConfig) -> Trial:
    config = condition.config(asked)
    try:
        check_machine(planned(config).nemesis)
    except UserError as error:
        if condition.nemesis == NO_FAULT:  # nothing about it suits: not for its fault
            raise
        return Trial(condition, config, refused=error.message)
    return Trial(condition, config)


def tried(all_: Sequence[Trial], watcher: Watcher = silent) -> Iterator[Trial]:
    """Each as it ends; none after one that was interrupted, or after a first one that failed."""
    for each in all_:
        if each.refused:
            yield each
            continue
        outcome = execute(each.config, watcher)
        yield Trial(each.condition, each.config, outcome)
        if outcome.interrupted or (outcome.error and each is all_[0]):
            return
