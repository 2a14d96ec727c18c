"""Runs of one lock, one after the other, each drawn or chosen when the one before it has ended."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lockcheck.checker.finding import Culprit, Verdict
from lockcheck.config import RunConfig
from lockcheck.durations import duration_words
from lockcheck.matrix.folder import Folder, Plan
from lockcheck.matrix.model import ANY, Cell, Expectation, Found, Result, Trial
from lockcheck.matrix.running import Runner
from lockcheck.words import amount, listed


@dataclass(frozen=True, slots=True)
class Wanted:
    """A kind of violation: of any code, or with any blame, where that is empty."""

    code: str = ""
    blame: str = ""
    not_the_holders: bool = False

    def among(self, result: Result) -> list[Found]:
        return [
            found
            for found in result.found
            if found.effect == Verdict.VIOLATION
            and self.code in ("", found.code)
            and self.blame in ("", found.blame)
            and not (self.not_the_holders and found.blame == Culprit.HOLDER)
        ]


@dataclass
class Attempts:
    """Each is a trial in a process of its own, in a folder like a campaign's."""

    folder: Folder
    name: str
    number: int = 0

    @staticmethod
    def begin(out: Path, name: str, config: RunConfig) -> Attempts:
        cell = Cell(id=name, config=config, expectation=Expectation(verdict=ANY), seeds=())
        plan = Plan(source=name, cells=(cell,))
        return Attempts(Folder.begin(out, plan, prefix=f"{name}-"), name)

    def carried_out(self, config: RunConfig) -> Result:
        """Raises KeyboardInterrupt if it was interrupted."""
        self.number += 1
        trial = Trial(id=f"{self.name}-{self.number}", cell=self.name, config=config)
        self.folder.add([trial])
        with closing(Runner(self.folder, jobs=1).results([trial])) as results:
            result = next(results, None)
        if result is None:
            raise KeyboardInterrupt
        return result

    def forget(self, result: Result, config: RunConfig) -> None:
        """Removes what a run has left in which nothing was found."""
        self.folder.forget(Trial(id=result.trial, cell=self.name, config=config))

    def page(self, result: Result) -> Path:
        return self.folder.path / result.report


def in_short(config: RunConfig) -> str:
    """What differs between the runs."""
    parts = [
        duration_words(config.time_limit_ms),
        amount(config.clients, "client"),
        *([amount(config.keys, "key")] if config.keys > 1 else []),
        f"ttl {duration_words(config.ttl_ms)}",
        f"think {duration_words(config.think_ms)}",
    ]
    return f"{', '.join(parts)}: {listed(config.nemesis)}"
