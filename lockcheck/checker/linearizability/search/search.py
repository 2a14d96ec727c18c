"""The general engine: any model, any history, as long as patience lasts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lockcheck.checker.linearizability.answer import Answer, Patience, endless
from lockcheck.checker.linearizability.calls import calls_of
from lockcheck.checker.linearizability.either import either
from lockcheck.checker.linearizability.leases import leased
from lockcheck.checker.linearizability.models import SEARCH, Model
from lockcheck.checker.linearizability.search.evidence import answer_from
from lockcheck.checker.linearizability.search.native import native_search
from lockcheck.checker.linearizability.search.plan import Transitions, plan_of
from lockcheck.checker.linearizability.search.python import Search
from lockcheck.checker.linearizability.search.window import SIZES, Window, window
from lockcheck.history.table import NEVER, Ints, Outcome, Table
from lockcheck.native import core

BRIEF = 50  # calls of `may_go_on` before a window of the history is tried


def search(
    table: Table, model: Model, patience: Patience = endless, until: Ints | None = None
) -> Answer:
    """Decides one object; `until` is the end of the promise of each grant and renewal."""
    if until is not None:
        model = leased(model)
    if (table.outcome == Outcome.EITHER).any():
        model = model if model.crowd else either(model)
        # A renewal narrows down the possible states: so it does not only look.
        until = np.full(len(table), NEVER) if until is None else until
    if not model.owners:
        return _searched(table, model, patience, until)[0]
    brief = Brief(patience)
    answer, stuck_ns = _searched(table, model, brief.patience, until)
    if answer.decided or not brief.over:
        return answer
    for size in SIZES:
        part = window(table, until, stuck_ns, size)
        refuted = part and _refuted(part, model, patience)
        if refuted:
            return refuted
    return _searched(table, model, patience, until)[0]


class Brief:
    """Patience for a few calls of `may_go_on`, each after some thousand steps."""

    def __init__(self, patience: Patience, calls: int = BRIEF) -> None:
        self.patience = replace(patience, may_go_on=self._may_go_on)
        self._whole = patience
        self._left = calls

    @property
    def over(self) -> bool:
        return self._left <= 0

    def _may_go_on(self) -> bool:
        self._left -= 1
        return not self.over and self._whole.may_go_on()


def _refuted(part: Window, model: Model, patience: Patience) -> Answer | None:
    answer, _ = _searched(part.table, model, Brief(patience).patience, part.until)
    if answer.linearizable is not False:
        return None
    rows, prefix = (
        tuple(row for row in part.rows[list(own)].tolist() if row >= 0)
        for own in (answer.rows, answer.prefix)
    )
    stuck_on = None if answer.stuck_on is None else int(part.rows[answer.stuck_on])
    return replace(answer, rows=rows, prefix=prefix, stuck_on=stuck_on)


def _searched(
    table: Table, model: Model, patience: Patience, until: Ints | None
) -> tuple[Answer, int]:
    """The answer, and when the operation returned that no order got past so far."""
    if not patience.may_go_on():
        return Answer(linearizable=None, engine=SEARCH, reason="patience ran out before"), 0
    calls = calls_of(table, model, until)
    plan, transitions = plan_of(calls), Transitions(model, calls)
    library = core()
    if library is None:
        found = Search(plan, transitions).run(patience)
    else:
        found = native_search(library, plan, transitions, patience)
    if found.linearizable:
        return Answer(linearizable=True, engine=SEARCH), 0
    stuck_ns = int(plan.time[found.place])
    if found.linearizable is None:
        stopped = "its memory was used up (--memory)" if found.exhausted else "it was stopped"
        reason = f"{stopped} when {found.place} of {len(plan.kind)} answers were explained"
        return Answer(linearizable=None, engine=SEARCH, reason=reason), stuck_ns
    return answer_from(table, calls, plan, transitions, found), stuck_ns
