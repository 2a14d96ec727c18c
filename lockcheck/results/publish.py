"""Writes down what was judged: the verdict and the record for programs, the report for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockcheck.errors import UserError
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


def _config(store: Store) -> RunConfig | None:
    try:
        return store.config()
    except UserError:  # a bare history, or the run of another version
        return None
