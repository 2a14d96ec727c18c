"""Judging a stored history again: no cluster, no Docker, nothing but the file."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from lockcheck.checker import judge
from lockcheck.checker.finding import Judgement
from lockcheck.errors import UserError
from lockcheck.history import History, read_history
from lockcheck.results.publish import publish, write_page
from lockcheck.results.store import HISTORY_FILE, RunFacts, Store

DEFAULT_OUT = Path("results")


@dataclass(frozen=True, slots=True)
class Checked:
    history: History
    judgement: Judgement
    report: Path | None
    facts: RunFacts
    unwritten: str  # why the run's folder could not be brought up to date; empty: it was

    @property
    def exit_code(self) -> int:
        return self.judgement.verdict.exit_code


def recheck(run_or_file: Path, report: Path | None) -> Checked:
    """A run's verdict and report are written anew; a bare file is only read."""
    store = _run_folder(run_or_file)
    source = store.history if store else run_or_file
    history = read_history(source)
    facts = (store.load_facts() if store else None) or _facts_of_a_stranger(source)
    judgement = facts.applied_to(judge(history))
    unwritten = ""
    if store is not None:
        try:
            publish(store, history, judgement, facts)
        except OSError as error:  # somebody else's run, perhaps: it is judged all the same
            unwritten = str(error)
    if report is not None:
        _write_report(report, history, judgement, facts)
    written = store.report if store and not unwritten else None
    return Checked(history, judgement, report or written, facts, unwritten)


def _run_folder(given: Path) -> Store | None:
    """A folder, or the name of one below `results`; None where a file is meant."""
    if given.is_file():
        return None
    for folder in (given, DEFAULT_OUT / given):
        if folder.is_dir():
            if not (folder / HISTORY_FILE).is_file():
                raise UserError(
                    f"{folder} holds no {HISTORY_FILE}",
                    cure="name the folder of a run, or a history file",
                )
            return Store(folder.resolve())
    raise UserError(
        f"{given} is neither a run nor a history file",
        cure="name a run's folder, `latest`, or a history in JSON Lines",
    )


def _facts_of_a_stranger(source: Path) -> RunFacts:
    return RunFacts(
        run_id=source.name,
        started_at="",
        plan=(("history", str(source)),),
        versions=(),
        rerun_command="",
        check_command=shlex.join(["lockcheck", "check", str(source)]),
    )


def _write_report(path: Path, history: History, judgement: Judgement, facts: RunFacts) -> None:
    try:
        write_page(path, history, judgement, facts)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror}", cure="choose another --report FILE"
        ) from error
