"""What a campaign is made of: cells, each one run with an expectation, trials of a cell, one for
each seed, and what became of them. All of it is data: shards and later nights read it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import msgspec

from lockcheck.checker.finding import Verdict
from lockcheck.config import RunConfig

ANY = "any"


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict`: ok, violation or any. With `share`, of how many trials: `>= 0.8`."""

    verdict: str = str(Verdict.OK)
    compare: str = ""  # >=, <=, >, < or ==; empty: of all trials
    share: float = 1.0
    findings: tuple[str, ...] = ()  # codes that have to be found
    blame: str = ""  # of each finding
    demanding: bool = False  # of a lock of lockcheck's own: all that its runs have to show

    @property
    def words(self) -> str:
        share = f" in {self.compare} {self.share:.0%}" if self.compare else ""
        return f"{self.verdict}{share}"


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    id: str  # redis-fenced::pause::fence
    config: RunConfig
    expectation: Expectation
    seeds: tuple[int, ...]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the plan: a run that does no harm if it is done twice."""

    id: str  # redis-fenced::pause::fence[7]
    cell: str
    config: RunConfig


class Found(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Findings of one kind, whatever the seed: by this they are known again the next night."""

    code: str
    effect: str  # on the verdict: `ok` where a guard kept it from doing harm
    fault: str  # the fault's name, such as pause; empty: none was to blame
    blame: str
    number: int = 1


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a trial."""

    trial: str
    cell: str
    seed: int
    verdict: Verdict | None  # None: it could not be carried out
    exit_code: int
    seconds: float
    headline: str = ""
    whose: str = ""
    found: tuple[Found, ...] = ()
    doubts: tuple[str, ...] = ()
    doubt_codes: tuple[str, ...] = ()
    counts: Mapping[str, int] = {}
    faults: Mapping[str, int] = {}  # the kinds that were seen to take, and how often
    unfelt: tuple[str, ...] = ()  # the kinds that made no difference each time
    freed_ms: tuple[float, ...] = ()  # how soon locks were granted again whose holders had ended
    ungranted_ms: float | None = None  # the longest time in which a lock was asked for in vain
    lasted_ms: float = 0.0  # of the history
    report: str = ""  # its page, from the campaign's folder
    rerun: str = ""
    problem: str = ""  # why it could not be carried out
    wanting: tuple[str, ...] = ()  # what a demanding expectation did not get to see


def failed(trial: Trial, problem: str, exit_code: int, seconds: float) -> Result:
    """Of a trial that could not be carried out."""
    return Result(
        trial=trial.id,
        cell=trial.cell,
        seed=trial.config.seed,
        verdict=None,
        exit_code=exit_code,
        seconds=seconds,
        rerun=trial.config.command(),
        problem=problem,
    )


class Standing(StrEnum):
    """How a trial or a cell stands to its expectation, the worst first."""

    VIOLATION = "violation"  # that was not expected, or of another kind
    MISSED = "missed"  # the violation that was expected did not come: the tester may be blind
    ERROR = "error"
    UNKNOWN = "unknown"
    AS_EXPECTED = "as expected"

    @property
    def rank(self) -> int:
        return list(Standing).index(self)


@dataclass(frozen=True)
class CellOutcome:
    """A cell and all its results so far."""

    cell: Cell
    results: Sequence[Result]

    @cached_property
    def known(self) -> list[Result]:
        """Those with an answer."""
        return [r for r in self.results if r.verdict in (Verdict.OK, Verdict.VIOLATION)]

    @property
    def violations(self) -> int:
        return sum(result.verdict is Verdict.VIOLATION for result in self.known)
