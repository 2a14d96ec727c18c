"""The folder of a campaign: its plan, a folder for each trial, and its reports."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from lockcheck.errors import UserError
from lockcheck.files import read_document, writing
from lockcheck.matrix.model import Cell, CellOutcome, Result, Trial
from lockcheck.matrix.report.ndjson import ndjson
from lockcheck.trust import refuse_foreign_orders, refuse_foreign_place

T = TypeVar("T", bound=msgspec.Struct)

PREFIX = "matrix-"
PLAN, TRIALS, RESULT, RESULTS = "plan.ndjson", "trials", "result.json", "results.ndjson"
LONGEST_NAME = 120
_NO_NAME = re.compile(r"[^\w.=+-]+")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that two campaigns have in common that are the same: the first line of the plan."""

    source: str
    cells: tuple[Cell, ...]
    thresholds: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    shard: str = ""  # 2/4: this folder has every fourth trial, from the second on
    started: datetime | None = None

    @property
    def trials(self) -> list[Trial]:
        """Of each cell the first seed, then of each the second: what is cut short has seen all."""
        most = max((len(cell.seeds) for cell in self.cells), default=0)
        every = [
            trial_of(cell, cell.seeds[turn])
            for turn in range(most)
            for cell in self.cells
            if turn < len(cell.seeds)
        ]
        if not self.shard:
            return every
        number, of = map(int, self.shard.split("/"))
        return every[number - 1 :: of]

    @property
    def digest(self) -> str:
        """Of all that makes two campaigns the same."""
        whole = msgspec.structs.replace(self, shard="", left_out=(), started=None)
        return sha256(msgspec.json.encode(whole)).hexdigest()[:12]


def trial_of(cell: Cell, seed: int) -> Trial:
    config = msgspec.structs.replace(cell.config, seed=seed)
    return Trial(id=f"{cell.id}[{seed}]", cell=cell.id, config=config)


@dataclass(frozen=True, slots=True)
class Folder:
    """Of one campaign."""

    path: Path

    @staticmethod
    def at(path: Path) -> Folder:
        return Folder(path.resolve())

    @staticmethod
    def begin(out: Path, plan: Plan, prefix: str = PREFIX) -> Folder:
        began = datetime.now().astimezone()
        name = f"{prefix}{began:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        refuse_foreign_place(out / name)
        folder = Folder(out.resolve() / name)
        folder.refuse_shared_names(plan.trials)
        try:
            (folder.path / TRIALS).mkdir(parents=True)
            lines = [msgspec.structs.replace(plan, started=began), *plan.trials]
            folder.write(PLAN, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        except OSError as error:
            raise UserError(
                f"{out} cannot hold results: {error.strerror}",
                cure="choose another folder with --out DIR",
            ) from error
        return folder

    def refuse_shared_names(self, trials: Iterable[Trial]) -> None:
        """Else one of them would be given the other's result."""
        named: dict[Path, str] = {}
        for trial in trials:
            if (other := named.setdefault(self.of_trial(trial), trial.id)) != trial.id:
                raise UserError(
                    f"{other} and {trial.id} would have one folder", cure="call one otherwise"
                )

    def add(self, trials: Iterable[Trial]) -> None:
        """To the plan."""
        lines = [*self._lines(PLAN), *map(msgspec.json.encode, trials)]
        self.write(PLAN, b"".join(line + b"\n" for line in lines))

    def write(self, name: str, content: bytes) -> None:
        with writing(self.path / name) as out:
            out.write(content)

    def plan(self) -> Plan:
        first, *_ = self._lines(PLAN)
        return self._decoded(first, Plan)

    def trial(self, name: str) -> Trial:
        for line in self._lines(PLAN)[1:]:
            trial = self._decoded(line, Trial)
            if trial.id == name:
                return trial
        raise UserError(f"{self.path / PLAN} has no trial {name!r}", cure="its ids are in the file")

    def _lines(self, name: str) -> list[bytes]:
        refuse_foreign_orders(self.path / name)  # a plan names programs
        try:
            return read_document(self.path / name).splitlines()
        except OSError as error:
            raise UserError(
                f"{self.path} is no folder of a campaign: {name}: {error.strerror}",
                cure="name one that `lockcheck matrix` made",
            ) from error

    def _decoded(self, line: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise UserError(
                f"{self.path} has a plan that cannot be read: {error}",
                cure="begin the campaign anew",
            ) from error

    # --- what became of its trials

    def of_trial(self, trial: Trial) -> Path:
        """Named after it: the same in folders, in JUnit and on the page."""
        name = _NO_NAME.sub("-", trial.id).strip("-")
        short = f"{name[:LONGEST_NAME]}-{sha256(trial.id.encode()).hexdigest()[:6]}"
        return self.path / TRIALS / (name if len(name) <= LONGEST_NAME else short)

    def result(self, trial: Trial) -> Result | None:
        """None: it was not carried out yet, or was cut short."""
        try:
            written = read_document(self.of_trial(trial) / RESULT)
            return msgspec.json.decode(written, type=Result)
        except (OSError, msgspec.DecodeError):
            return None

    def clear(self, trial: Trial) -> Path:
        """What an attempt that was cut short has left is gone."""
        folder = self.of_trial(trial)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def save(self, trial: Trial, result: Result) -> None:
        """The last thing that is written of a trial: it is there, or the trial is not done."""
        report = os.path.relpath(result.report, self.path) if result.report else ""
        saved = msgspec.structs.replace(result, report=report)
        with writing(self.of_trial(trial) / RESULT) as out:
            out.write(msgspec.json.encode(saved))

    def forget(self, trial: Trial) -> None:
        """Of a trial that was cut short nothing stays."""
        shutil.rmtree(self.of_trial(trial), ignore_errors=True)

    def finish(self, results: Iterable[Result]) -> None:
        """From now on it is a campaign that others are compared with."""
        self.write(RESULTS, ndjson(results))

    @property
    def finished(self) -> bool:
        return (self.path / RESULTS).exists()

    def outcomes(self) -> tuple[CellOutcome, ...]:
        return outcomes_of(self.plan(), [self])


def campaigns_in(out: Path) -> Iterator[Folder]:
    """The newest first."""
    found = sorted(out.glob(f"{PREFIX}*/{PLAN}"), reverse=True)
    yield from (Folder(path.parent.resolve()) for path in found)


def unfinished(out: Path, plan: Plan) -> Folder | None:
    """The newest campaign of the same plan, if it was cut short."""
    for folder in campaigns_in(out):
        there = folder.plan()
        if (there.digest, there.shard) == (plan.digest, plan.shard):
            return None if folder.finished else folder
    return None


def outcomes_of(plan: Plan, folders: Iterable[Folder]) -> tuple[CellOutcome, ...]:
    """Of all its cells, with what these folders have of them."""
    whole = msgspec.structs.replace(plan, shard="")
    found: dict[str, list[Result]] = {cell.id: [] for cell in plan.cells}
    every = list(folders)
    for trial in whole.trials:
        known = (result for each in every if (result := each.result(trial)) is not None)
        found[trial.cell] += [result for result in [next(known, None)] if result is not None]
    asked = {trial.cell for trial in plan.trials}  # a shard may have none of a cell
    return tuple(CellOutcome(cell, found[cell.id]) for cell in plan.cells if cell.id in asked)
