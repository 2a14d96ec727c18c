"""From a history to its judgement: all checks, the doubts, and the verdict they add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lockcheck.checker import not_linearizable, screens, soundness
from lockcheck.checker.counts import count
from lockcheck.checker.finding import Code, Counts, Finding, Judgement, Verdict
from lockcheck.checker.linearizability import Patience, endless
from lockcheck.checker.registry import CHECKS
from lockcheck.checker.subject import Glimpse, Subject, Whole
from lockcheck.history import History
from lockcheck.history.ordering import order_by
from lockcheck.history.scan import Scan
from lockcheck.history.table import NOTHING, Op

T = TypeVar("T")


def judge(history: History, patience: Patience = endless) -> Judgement:
    """`patience` is asked now and then whether a search may go on: without it, it always may."""
    case = _Case(Whole(history), patience)
    case.check(history, (code for code in CHECKS if code != Code.NOT_LINEARIZABLE))
    case.doubt("run itself", lambda: soundness.doubts(history))
    return case.judgement(count(history))


def judge_scan(scan: Scan, patience: Patience = endless) -> tuple[Judgement, History]:
    """The judgement, and the part of the history that had to be looked at event by event."""
    if screens.whole(scan):
        history = scan.rows()
        return judge(history, patience), history
    places = screens.places(scan)
    history = scan.around([group for groups in places.values() for group in groups])
    case = _Case(Glimpse(scan), patience)
    case.check(history, [code.value for code in places])
    many = any(len(groups) == screens.MOST_PLACES for groups in places.values())
    if many and not case.is_violation:
        # There may be more to find than where we looked, and it would change the verdict.
        history = scan.rows()
        return judge(history, patience), history
    amounts = _amounts(scan)
    case.doubt("history itself", lambda: soundness.too_few(scan.terms, amounts))
    judgement = case.judgement(_counts(amounts))
    return replace(judgement, cut=MANY if many else ""), history


MANY = f"There is more: only the first {screens.MOST_PLACES:,} suspicious places were looked at"


@dataclass(slots=True)
class _Case:
    """What has been found so far. A checker that crashes is a doubt, never ok: whatever it raised,
    the others still judge."""

    subject: Subject
    patience: Patience
    findings: list[Finding] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def check(self, history: History, codes: Iterable[str]) -> None:
        for code in codes:
            self.findings += self._guarded(f"check {code}", partial(CHECKS[code].find, history))

    def doubt(self, name: str, doubts: Callable[[], Iterable[str]]) -> None:
        self.doubts += self._guarded(f"check of the {name}", doubts)

    @property
    def is_violation(self) -> bool:
        return any(finding.effect is Verdict.VIOLATION for finding in self.findings)

    def _guarded(self, name: str, found: Callable[[], Iterable[T]]) -> list[T]:
        try:
            return list(found())
        except Exception as error:  # noqa: BLE001
            self.doubts.append(f"the {name} crashed: {type(error).__name__}: {error}")
            return []

    def judgement(self, counts: Counts) -> Judgement:
        name = f"check {Code.NOT_LINEARIZABLE.value}"
        examined = self._guarded(
            name, lambda: not_linearizable.examine(self.subject, self.patience)
        )
        self.findings += self._guarded(
            name, lambda: not_linearizable.findings(self.subject, examined)
        )
        self.doubts += not_linearizable.doubts(self.subject, examined)
        self.doubts += soundness.doubts_of_findings(self.findings)
        overlaps = Counter(f.key for f in self.findings if f.code is Code.OVERLAP)
        effects = [finding.effect for finding in self.findings]
        return Judgement(
            verdict=Verdict.merge([*effects, Verdict.UNKNOWN] if self.doubts else effects),
            findings=tuple(sorted(self.findings, key=lambda finding: finding.time_ns)),
            doubts=tuple(dict.fromkeys(self.doubts)),
            counts=counts,
            definitions=tuple(not_linearizable.definitions(self.subject, examined, overlaps)),
        )


def _amounts(scan: Scan) -> soundness.Amounts:
    table, holds = scan.table, scan.holds
    node = scan.columns.node[holds.granted]
    # Who names no node is a node by itself: see `Operation.node`.
    whose = np.where(node == NOTHING, -2 - table.process[holds.granted], node)
    key = table.key[holds.granted]
    pairs = _distinct(key, whose)
    return soundness.Amounts(
        operations=len(table),
        judged=len(table),
        asked=int(np.count_nonzero(table.f == Op.ACQUIRE)),
        granted=len(key),
        holders=len(np.unique(whose)),
        shared_keys=int(np.count_nonzero(np.bincount(pairs + 1) >= soundness.FEWEST_HOLDERS)),
        accepted=0,
    )


def _distinct(key: NDArray[np.int32], whose: NDArray[np.int32]) -> NDArray[np.int32]:
    """The key of each pair of a key and a holder that occurs."""
    order = order_by(key, whose)
    key, whose = key[order], whose[order]
    fresh = np.append(True, (key[1:] != key[:-1]) | (whose[1:] != whose[:-1]))[: len(key)]
    found: NDArray[np.int32] = key[fresh]
    return found


def _counts(amounts: soundness.Amounts) -> Counts:
    return Counts(
        operations=amounts.operations,
        acquisitions=amounts.granted,
        holders=amounts.holders,
        faults=0,
        writes_accepted=0,
        writes_refused=0,
        stale_writes_refused=0,
    )
