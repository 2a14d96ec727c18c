"""Writes down what was judged: the verdict and the record for programs, the report for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lockcheck.errors import UserError
from lockcheck.files import writing
from lockcheck.results.report import render
from lockcheck.results.story.narrative import Narrative
from lockcheck.results.summary import verdict_summary
from lockcheck.runs.facts import RunFacts
from lockcheck.runs.store import Store

if TYPE_CHECKING:
    from lockcheck.config import RunConfig
    from lockcheck.runs.record import Record


def publish(store: Store, narrative: Narrative, facts: RunFacts) -> Record:
    """Writes verdict, report and record; the record last, so that it never precedes the others."""
    from lockcheck.runs.record import record_of  # a run's settings take time to import

    record = record_of(facts, _config(store), narrative.judgement)
    store.save_verdict(verdict_summary(narrative, facts.problem))
    store.save_page(render(narrative, facts))
    store.save_record(record)
    return record


def write_page(path: Path, narrative: Narrative, facts: RunFacts) -> None:
    try:
        with writing(path) as out:
            out.write(render(narrative, facts).encode())
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror}", cure="write the report to another file"
        ) from error


def _config(store: Store) -> RunConfig | None:
    try:
        return store.config()
    except UserError:  # a bare history, or the run of another version
        return None
