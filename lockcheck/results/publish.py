"""Writes down what was judged: the verdict for programs, the report for people."""

from __future__ import annotations

from pathlib import Path

from lockcheck.checker.finding import Judgement
from lockcheck.history import History
from lockcheck.results.facts import RunFacts
from lockcheck.results.report import ReportInput, render
from lockcheck.results.store import Store


def publish(store: Store, history: History, judgement: Judgement, facts: RunFacts) -> None:
    store.save_facts(facts)
    store.save_verdict(judgement, facts.problem)
    write_page(store.report, history, judgement, facts)


def write_page(path: Path, history: History, judgement: Judgement, facts: RunFacts) -> None:
    page = render(
        ReportInput(
            run_id=facts.run_id,
            started_at=facts.started_at,
            history=history,
            judgement=judgement,
            plan=facts.plan,
            versions=facts.versions,
            rerun_command=facts.rerun_command,
            check_command=facts.check_command,
            problem=facts.problem,
        )
    )
    path.write_text(page, encoding="utf-8")
