"""An entry of the list: a run, by its `record.json`, or a campaign, by its plan and results.

Of a record only what the list shows is decoded: there may be thousands, and other versions' too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from lockcheck.checker.finding import Verdict
from lockcheck.matrix.concluding import concluded
from lockcheck.matrix.folder import PLAN, RESULT, RESULTS, TRIALS, Folder
from lockcheck.matrix.model import Result, Trial
from lockcheck.matrix.report.lines import sentence, verdict_of
from lockcheck.matrix.report.ndjson import read_results
from lockcheck.runs.store import HISTORY_FILE, RECORD_FILE, REPORT_FILE, VERDICT_FILE
from lockcheck.serve.places import read_below
from lockcheck.signals import INTERRUPTED

OF_A_RUN = (REPORT_FILE, HISTORY_FILE, VERDICT_FILE)
OF_A_CAMPAIGN = ("index.html", "sweep.html", "junit.xml", "summary.md")
PAGES = ("index.html", "sweep.html", REPORT_FILE)


class Kind(StrEnum):
    CAMPAIGN = "campaign"
    RUN = "run"
    TRIAL = "run of a campaign"


class Status(StrEnum):
    """The verdict, or why there is none; the worst first."""

    VIOLATION = "violation"
    ERROR = "error"
    UNKNOWN = "unknown"
    CUT_SHORT = "cut short"
    RUNNING = "running"
    OK = "ok"


RANKS = {status: rank for rank, status in enumerate(Status)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    kind: Kind
    parts: tuple[str, ...]  # its folder, from the one that is served
    name: str
    status: Status
    started: float = 0.0  # seconds since the epoch; 0: unknown
    took_s: float | None = None
    backends: tuple[str, ...] = ()
    nemeses: tuple[str, ...] = ()
    guard: str = ""
    about: str = ""  # what was found, or why there is no verdict
    files: tuple[str, ...] = ()  # those that can be fetched
    open: bool = False  # it may still be under way

    @property
    def faults(self) -> set[str]:
        """Their names alone: `pause` of `pause:holder`."""
        return {nemesis.partition(":")[0] for nemesis in self.nemeses}

    @property
    def texts(self) -> tuple[str, ...]:
        """What a search looks at."""
        of_it = (self.name, self.kind, self.status, self.guard, self.about)
        return (*self.parts, *of_it, *self.backends, *self.nemeses)


# --- runs ----------------------------------------------------------------------------------------


class _Config(msgspec.Struct):
    backend: str = ""
    nemesis: tuple[str, ...] = ()
    guard: str = "none"


class _Tally(msgspec.Struct):
    code: str
    effect: Verdict
    number: int

    @property
    def words(self) -> str:
        return f"{self.code} without harm" if self.effect is Verdict.OK else self.code


class _Record(msgspec.Struct):
    verdict: Verdict
    findings: tuple[_Tally, ...] = ()
    config: _Config | None = None
    counts: dict[str, Any] | None = None  # None: it was not judged yet
    started: datetime | None = None
    took_ms: float | None = None
    exit_code: int | None = None
    problem: str = ""

    @property
    def status(self) -> Status:
        if self.problem and self.verdict is Verdict.UNKNOWN:
            killed = self.exit_code in (None, INTERRUPTED)
            return Status.CUT_SHORT if killed else Status.ERROR
        return Status(str(self.verdict))

    @property
    def about(self) -> str:
        """One line."""
        numbers: dict[str, int] = {}
        for tally in self.findings:
            numbers[tally.words] = numbers.get(tally.words, 0) + tally.number
        found = ", ".join(f"{number:,} {words}" for words, number in numbers.items())
        return found or self.problem.partition("\n")[0]


_RECORD = msgspec.json.Decoder(_Record)


def run_entry(root: Path, parts: tuple[str, ...], names: Collection[str]) -> Entry:
    """`names`: of the files in its folder."""
    kind = Kind.TRIAL if TRIALS in parts[:-2] else Kind.RUN
    name = (parts[-2] if kind is Kind.TRIAL else parts[-1]) if parts else root.name
    files = tuple(each for each in OF_A_RUN if each in names)
    try:
        record = _RECORD.decode(read_below(root, (*parts, RECORD_FILE)))
    except (OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        about = f"{RECORD_FILE} cannot be read: {error}"
        return Entry(
            kind=kind, parts=parts, name=name, status=Status.ERROR, about=about, files=files
        )
    config = record.config or _Config()
    return Entry(
        kind=kind,
        parts=parts,
        name=name,
        status=record.status,
        started=record.started.timestamp() if record.started else 0.0,
        took_s=None if record.took_ms is None else record.took_ms / 1000,
        backends=(config.backend,) if config.backend else (),
        nemeses=config.nemesis,
        guard="" if config.guard == "none" else f"guard {config.guard}",
        about=record.about,
        files=files,
        open=record.exit_code is None and record.counts is None,
    )


# --- campaigns -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recorded(Folder):
    """A campaign with its results, read once and through no link."""

    results: Mapping[str, Result] = field(default_factory=dict)

    def result(self, trial: Trial) -> Result | None:
        return self.results.get(trial.id)


def recorded(root: Path, parts: tuple[str, ...]) -> Recorded:
    path = root.joinpath(*parts)
    folder = Folder(path)
    if folder.finished:
        results = read_results(path / RESULTS)
        return Recorded(path, {result.trial: result for result in results})
    known = {}
    for trial in folder.plan().trials:
        try:
            written = read_below(root, (*parts, TRIALS, folder.of_trial(trial).name, RESULT))
            known[trial.id] = msgspec.json.decode(written, type=Result)
        except (OSError, msgspec.DecodeError):
            continue
    return Recorded(path, known)


def campaign_entry(root: Path, parts: tuple[str, ...], names: Collection[str]) -> Entry:
    """Without a verdict while it is not finished."""
    folder = parts[-1] if parts else root.name
    files = tuple(each for each in OF_A_CAMPAIGN if each in names)
    try:
        return _campaign_entry(root, parts, files, finished=RESULTS in names)
    except Exception as error:  # noqa: BLE001 - a stranger's plan can raise anything; it is shown
        return Entry(
            kind=Kind.CAMPAIGN,
            parts=parts,
            name=folder,
            status=Status.ERROR,
            about=f"{PLAN} cannot be read: {error}".partition("\n")[0],
            files=files,
        )


def _campaign_entry(
    root: Path, parts: tuple[str, ...], files: tuple[str, ...], *, finished: bool
) -> Entry:
    plan = Folder(root.joinpath(*parts)).plan()
    configs = [cell.config for cell in plan.cells]
    planned = len(plan.trials)  # none where each run is chosen after the one before, as in a search
    campaign = concluded(plan, [recorded(root, parts)], None, None) if finished else None
    shard = f", shard {plan.shard}" if plan.shard else ""
    return Entry(
        kind=Kind.CAMPAIGN,
        parts=parts,
        name=f"{plan.source}{shard}",
        status=Status(str(verdict_of(campaign))) if campaign else Status.CUT_SHORT,
        started=plan.started.timestamp() if plan.started else 0.0,
        took_s=campaign.seconds if campaign else None,
        backends=tuple(dict.fromkeys(config.backend for config in configs)),
        nemeses=tuple(dict.fromkeys(each for config in configs for each in config.nemesis)),
        about=sentence(campaign) if campaign else f"of {planned:,} runs done" if planned else "",
        files=files,
        open=not finished,
    )
