"""Each property that a run was judged by: it held, was broken, or was not put to the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lockcheck.checker import CHECKS
from lockcheck.checker.finding import Code, Judgement, Verdict
from lockcheck.history import F, History
from lockcheck.results.story.seen import about_locks, clients
from lockcheck.results.story.wording.codes import anomalies

Tested = Callable[[History, Judgement], bool]


@dataclass(frozen=True, slots=True)
class Property:
    text: str
    held: bool | None  # None: nothing of the kind happened, so it was not put to the test


def properties(history: History, judgement: Judgement) -> tuple[Property, ...]:
    """Of an object that is no lock only those that were put to the test."""
    every = (_property(str(code), history, judgement) for code in CHECKS)
    locks = about_locks(history, judgement)
    return tuple(each for each in every if locks or each.held is not None)


def _property(code: str, history: History, judgement: Judgement) -> Property:
    words, found = CHECKS[code].words, judgement.of(code)
    counted = [finding for finding in found if finding.effect is not Verdict.OK]
    if counted:
        return Property(anomalies(code, len(counted)), held=False)
    text = words.kept or f"no {words.many}"
    if found:  # a guard kept it from doing harm
        return Property(f"{anomalies(code, len(found))}, without harm", held=True)
    tested = _TESTED.get(code, _locks)(history, judgement)
    return Property(text, held=True if tested else None)


def _locks(history: History, judgement: Judgement) -> bool:
    return about_locks(history, judgement) and judgement.counts.acquisitions > 0


def _writes(_: History, judgement: Judgement) -> bool:
    return judgement.counts.writes_accepted > 0


def _in_full(seen: Callable[[History], bool]) -> Tested:
    """Of a long log only a part is at hand, and it may have been in the rest."""
    return lambda history, judgement: (
        _locks(history, judgement) and (clients(history, judgement) is None or seen(history))
    )


_TESTED: dict[str, Tested] = {
    Code.STALE_WRITE: _writes,
    Code.LOST_UPDATE: _writes,
    Code.STALE_READ: _writes,
    Code.DOUBLE_RUN: lambda _, judgement: judgement.counts.jobs_run > 0,
    Code.NOT_LINEARIZABLE: lambda _, judgement: bool(judgement.definitions),
    Code.UNFAIR: lambda history, _: history.terms.fair,
    Code.DEADLOCK: _in_full(lambda history: len({hold.key for hold in history.holds}) > 1),
    Code.REVIVED: _in_full(lambda history: any(o.f == F.RENEW for o in history.operations)),
    Code.TOKEN_REGRESSION: _in_full(
        lambda history: any(hold.token is not None for hold in history.holds)
    ),
}
