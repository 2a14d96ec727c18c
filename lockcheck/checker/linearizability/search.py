"""The general engine: any model, any history, as long as it takes or patience lasts."""

from __future__ import annotations

from lockcheck.checker.linearizability.answer import Answer, Patience, endless
from lockcheck.checker.linearizability.calls import calls_of
from lockcheck.checker.linearizability.models import Model
from lockcheck.checker.linearizability.search_evidence import evidence
from lockcheck.checker.linearizability.search_native import native_search
from lockcheck.checker.linearizability.search_plan import Transitions, plan_of
from lockcheck.checker.linearizability.search_python import Search
from lockcheck.history.table import Table
from lockcheck.native import core

ENGINE = "search"


def search(table: Table, model: Model, patience: Patience = endless) -> Answer:
    """Of the operations on one object: whoever has several calls this for each of them."""
    calls = calls_of(table, model)
    plan, transitions = plan_of(calls), Transitions(model, calls)
    library = core()
    if library is None:
        found = Search(plan, transitions).run(patience)
    else:
        found = native_search(library, plan, transitions, patience)
    if found.linearizable:
        return Answer(linearizable=True, engine=ENGINE)
    if found.linearizable is None:
        stopped = "memory ran out" if found.exhausted else "it was stopped"
        reason = f"{stopped} when {found.place} of {len(plan.kind)} answers were explained"
        return Answer(linearizable=None, engine=ENGINE, reason=reason)
    return evidence(table, calls, plan, transitions, found)
