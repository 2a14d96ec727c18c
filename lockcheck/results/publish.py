"""Writes down what was judged: the verdict for programs, the report for people."""

from __future__ import annotations

from lockcheck.checker.finding import Judgement
from lockcheck.history import History
from lockcheck.results.facts import RunFacts
from lockcheck.results.report import ReportInput, render
from lockcheck.results.store import Store


def publish(store: Store, history: History, judgement: Judgement, facts: RunFacts) -> None:
    store.save_verdict(judgement, facts.problem)
    store.save_page(page_of(history, judgement, facts))


def page_of(history: History, judgement: Judgement, facts: RunFacts) -> str:
    return render(
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
