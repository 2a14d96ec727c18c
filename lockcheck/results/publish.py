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
    """The record is written last, so that whatever it is beside belongs to it."""
    from lockcheck.runs.record import record_of  # with a run's settings, which mere files lack

    record = record_of(facts, _config(store), narrative.judgement)
    store.save_verdict(verdict_summary(narrative, facts.problem))
    store.save_page(render(narrative, facts))
    store.save_record(record)
    return record


def _config(store: Store) -> RunConfig | None:
    try:
        return store.config()
    except UserError:  # a bare history, or of another version: it is judged without
        return None
