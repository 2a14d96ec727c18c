"""The numbers at the top of the page: damage first."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.finding import Judgement
from lockcheck.history import History
from lockcheck.results import story

Row = tuple[str, str]  # what it is, and how many there were


def count_rows(narrative: story.Narrative) -> tuple[Row, ...]:
    history, judgement = narrative.history, narrative.judgement
    rows = _of_a_lock if narrative.about_locks else _of_an_object
    return tuple(rows(history, judgement))


def _of_a_lock(history: History, judgement: Judgement) -> Iterator[Row]:
    counts, terms = judgement.counts, history.terms
    if counts.updates_acknowledged:
        lost = f"{counts.updates_lost:,} of {counts.updates_acknowledged:,}"
        yield "acknowledged writes lost", lost
    if terms.guard != "none" or counts.writes_refused:
        yield _counted(counts.stale_writes_refused, "stale write refused", "stale writes refused")
    if counts.writes_accepted + counts.writes_refused or (terms.stores and not counts.jobs_run):
        yield _counted(counts.writes_accepted, "write accepted", "writes accepted")
    if counts.jobs_run:
        yield _counted(counts.jobs_run, "job run", "jobs run")
    yield "injected, confirmed", story.injected(history, judgement) or "nothing"
    yield _counted(counts.acquisitions, "time granted", "times granted")
    yield _counted(counts.holders, "holder", "different holders")
    if counts.shared_together:
        yield "shared it at once", f"{counts.shared_together:,}"
    if terms.permits > 1 and terms.excludes:
        yield f"held at once, of {terms.permits} permits", f"{counts.held_together:,}"
    if counts.entered_deepest > 1:
        yield "levels entered", f"{counts.entered_deepest:,}"
    yield _counted(counts.operations, "operation", "operations")


def _of_an_object(history: History, judgement: Judgement) -> Iterator[Row]:
    clients, done = story.clients(history, judgement), story.injected(history, judgement)
    yield _counted(judgement.counts.operations, "operation", "operations")
    if clients is not None:
        yield _counted(clients, "client", "clients")
    if done:
        yield "injected, confirmed", done


def _counted(number: int, one: str, many: str) -> Row:
    return one if number == 1 else many, f"{number:,}"
