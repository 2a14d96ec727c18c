"""Writes down what was judged: the verdict and the record for programs, the report for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockcheck.checker.finding import Judgement
from lockcheck.errors import UserError
from lockcheck.history import History
from lockcheck.results.report import render
from lockcheck.results.summary import verdict_summary
from lockcheck.runs.facts import RunFacts
from lockcheck.runs.store import Store

if TYPE_CHECKING:
    from lockcheck.config import RunConfig
    from lockcheck.runs.record import Record


def publish(store: Store, history: History, judgement: Judgement, facts: RunFacts) -> Record:
    """The record is written last, so that whatever it is beside belongs to it."""
    from lockcheck.runs.record import record_of  # with a run's settings, which mere files lack

    record = record_of(facts, _config(store), judgement)
    store.save_verdict(verdict_summary(history, judgement, facts.problem))
    store.save_page(render(history, judgement, facts))
    store.save_record(record)
    return record


def _config(store: Store) -> RunConfig | None:
    try:
        return store.config()
    except UserError:  # a bare history, or of another version: it is judged without
        return None
