"""Writes down what was judged: the verdict for programs, the report for people."""

from __future__ import annotations

from lockcheck.checker.finding import Judgement
from lockcheck.history import History
from lockcheck.results.report import render
from lockcheck.results.summary import verdict_summary
from lockcheck.runs.facts import RunFacts
from lockcheck.runs.store import Store


def publish(store: Store, history: History, judgement: Judgement, facts: RunFacts) -> None:
    store.save_verdict(verdict_summary(history, judgement, facts.problem))
    store.save_page(render(history, judgement, facts))
