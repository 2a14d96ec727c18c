"""From a history to its judgement: all checks, the doubts, and the verdict they add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from lockcheck.checker.case import Case
from lockcheck.checker.columns import screens
from lockcheck.checker.columns.screen import MOST_IN_A_RUN, MOST_PLACES
from lockcheck.checker.columns.stored import Stored, stored
from lockcheck.checker.columns.stretches import Suspected
from lockcheck.checker.columns.struck import doubtful, meanwhile, struck
from lockcheck.checker.columns.subject import ColumnSubject, EventSubject, Subject
from lockcheck.checker.counts import count, lost
from lockcheck.checker.definitions import definitions
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.examined import examine
from lockcheck.checker.finding import Code, Counts, Finding, Judgement, Verdict
from lockcheck.checker.judges import not_linearizable
from lockcheck.checker.linearizability import Patience, endless
from lockcheck.checker.logs.apart import with_clocks
from lockcheck.checker.registry import CHECKS
from lockcheck.checker.whole_run import progress, soundness
from lockcheck.checker.whole_run.exercised import not_exercised
from lockcheck.checker.whole_run.freed import freed
from lockcheck.checker.whole_run.together import Together
from lockcheck.checker.whole_run.ungranted import longest_ungranted
from lockcheck.history import FaultSpan, History
from lockcheck.history.scan import Scan
from lockcheck.history.table import NOTHING, Ints, Op, Outcome

T = TypeVar("T")


def judge(history: History, patience: Patience = endless) -> Judgement:
    """Judges a history event by event. `patience` says whether a search may still go on."""
    return with_clocks(history, partial(_judge, patience=patience))


def _judge(history: History, patience: Patience) -> Judgement:
    case = Case(history)
    contradicted = any(soundness.contradictions(case.ledger))
    trial = _Trial(EventSubject(case), patience, contradicted=contradicted)
    judging = [code for code, check in CHECKS.items() if check.judges(history.terms)]
    trial.check(case, (code for code in judging if code != Code.NOT_LINEARIZABLE))
    trial.doubt("run itself", lambda: soundness.doubts(case))
    trial.doubt("quiet time", lambda: progress.doubts(case, trial.findings))
    judgement = trial.judgement(case, count(case))
    return replace(
        judgement,
        freed=freed(case),
        ungranted=longest_ungranted(case.history.table),
        not_exercised=not_exercised(case),
    )


def judge_scan(scan: Scan, patience: Patience = endless) -> Judgement:
    """Judges by columns, and by the events of suspicious places: its case has only those."""
    return with_clocks(scan, partial(_judge_scan, patience=patience))


def _judge_scan(scan: Scan, patience: Patience) -> Judgement:
    written = stored(scan)
    if screens.whole(scan, written):
        return _judge(scan.rows(), patience)
    places, suspected = screens.places(scan), screens.suspected_writes(scan, written)
    open_faults = doubtful(scan)
    case = _looked_at(scan, places, suspected, open_faults)
    trial = _Trial(ColumnSubject(scan), patience)
    writes = bool(suspected and suspected.stretches)
    screened = {code: check.screen for code, check in CHECKS.items() if check.judges(scan.terms)}
    trial.check(case, [c for c, s in screened.items() if c in places or (writes and s.of_writes)])
    many = any(len(groups) in (MOST_PLACES, MOST_IN_A_RUN) for groups in places.values())
    violated = any(finding.effect is Verdict.VIOLATION for finding in trial.findings)
    more = many and (scan.terms.backend or not violated)
    if more or soundness.aims_missed(case.history):
        # There may be more to find than where we looked, and it would change what is reported.
        return _judge(scan.rows(), patience)
    amounts = _amounts(scan, written)
    trial.doubt("run itself", lambda: soundness.of_faults(case.history))
    trial.doubt("history itself", lambda: soundness.too_few(scan.terms, amounts))
    judgement = trial.judgement(case, _counts(scan, case, amounts, written))
    unfelt = tuple(fault for fault in not_exercised(case) if fault in open_faults)
    cut = MANY if many else ""
    return replace(
        judgement,
        cut=cut,
        freed=freed(case),
        ungranted=longest_ungranted(scan.table),
        not_exercised=unfelt,
        scan=scan,
    )


def _looked_at(
    scan: Scan, places: dict[str, list[Ints]], suspected: Suspected | None, faults: list[FaultSpan]
) -> Case:
    """The events of everything that may have to be reported."""
    found = {id(group): group for groups in places.values() for group in groups}
    groups = [*found.values(), *struck(scan), *meanwhile(scan, faults)]
    if suspected is None:
        return Case(scan.around(groups))
    groups += suspected.groups(scan)
    return Case(scan.around(groups, suspected.entries, suspected.reads), suspected.by_key(scan))


MANY = f"There is more: only the first {MOST_PLACES:,} suspicious places were looked at"


@dataclass(slots=True)
class _Trial:
    """What has been found so far. A check that raises is a doubt, and the others still run."""

    subject: Subject
    patience: Patience
    findings: list[Finding] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    contradicted: bool = False  # clients and the storage contradict each other

    def check(self, case: Case, codes: Iterable[str]) -> None:
        for code in codes:
            self.findings += self._guarded(code, partial(CHECKS[code].find, case))

    def doubt(self, name: str, doubts: Callable[[], Iterable[Doubt]]) -> None:
        self.doubts += self._guarded(f"of the {name}", doubts)

    def _guarded(self, check: str, found: Callable[[], Iterable[T]]) -> list[T]:
        try:
            return list(found())
        except Exception as error:  # noqa: BLE001
            reason = f"{type(error).__name__}: {error}"
            self.doubts.append(Doubt(DoubtCode.CHECK_CRASHED, check=check, reason=reason))
            return []

    def judgement(self, case: Case, counts: Counts) -> Judgement:
        check = Code.NOT_LINEARIZABLE.value
        examined = self._guarded(check, lambda: examine(self.subject, self.patience))
        wrong = partial(not_linearizable.findings, self.subject, examined)
        self.findings += self._guarded(check, wrong)
        self.doubts += not_linearizable.doubts(self.subject, examined)
        if self.contradicted:
            self.findings = [
                replace(f, effect=Verdict.UNKNOWN) if CHECKS[f.code].by_storage else f
                for f in self.findings
            ]
        self.doubts += soundness.doubts_of_findings(self.findings)
        overlaps = Counter(f.key for f in self.findings if f.code == Code.OVERLAP)
        effects = [finding.effect for finding in self.findings]
        return Judgement(
            verdict=Verdict.merge([*effects, Verdict.UNKNOWN] if self.doubts else effects),
            findings=tuple(sorted(self.findings, key=lambda finding: finding.time_ns)),
            doubts=tuple(dict.fromkeys(self.doubts)),
            counts=counts,
            began_ns=self.subject.terms.began_ns,
            definitions=tuple(definitions(self.subject, examined, overlaps)),
            case=case,
        )


def _amounts(scan: Scan, written: Stored | None) -> soundness.Amounts:
    table, holds = scan.table, scan.holds
    node = scan.columns.node[holds.granted]
    # A process without a node is a node by itself: see `Operation.node`.
    whose = np.where(node == NOTHING, -2 - table.process[holds.granted], node)
    key = table.key[holds.granted]
    # Each pair of a key and a holder that occurs, as one number: the key is in its upper half.
    pairs = np.unique(key.astype(np.int64) << 32 | whose.astype(np.uint32))
    clients = np.bincount((pairs >> 32) + 1)  # by key, the first of which may be -1
    return soundness.Amounts(
        operations=len(table),
        answered=int(np.count_nonzero(table.outcome != Outcome.INFO)),
        judged=len(table),
        asked=int(np.count_nonzero(table.f == Op.ACQUIRE)),
        granted=len(key),
        holders=len(np.unique(whose)),
        shared_keys=int(np.count_nonzero(clients >= soundness.FEWEST_HOLDERS)),
        accepted=0 if written is None else int(np.count_nonzero(written.accepted)),
    )


def _together(scan: Scan, looked_at: Case) -> Together:
    """Outside of the part that was looked at, no lock was shared or entered again. A hold that was
    released later certainly lasted for some time."""
    seen, holds, table = looked_at.together, scan.holds, scan.table
    given_back = (holds.ended >= 0) & (table.f[holds.ended] == Op.RELEASE)
    # A hold whose client was notified of a loss may have ended at once.
    losers = {table.symbols.number(loss.process) for loss in ColumnSubject(scan).losses}
    notified = np.isin(table.process[holds.granted], [*losers])
    lasted = bool((given_back & ~notified & (holds.end > holds.start)).any())
    entered = 1 if len(holds.start) else 0
    return Together(max(seen.held, int(lasted)), seen.shared, max(seen.entered, entered))


def _counts(scan: Scan, case: Case, amounts: soundness.Amounts, written: Stored | None) -> Counts:
    seen = _together(scan, case)
    outcome = scan.table.outcome[written.row[written.accepted]] if written else np.zeros(0)
    refused = 0 if written is None else len(written) - amounts.accepted
    return Counts(
        operations=amounts.operations,
        acquisitions=amounts.granted,
        holders=amounts.holders,
        faults=sum(1 for fault in case.history.faults if fault.proven_ns is not None),
        writes_accepted=amounts.accepted,
        writes_refused=refused,
        stale_writes_refused=refused,  # by a guard, each of them: else it is judged by its events
        updates_acknowledged=int(np.count_nonzero(outcome == Outcome.OK)) if written else 0,
        updates_lost=sum(map(lost, case.versions)),
        held_together=seen.held,
        shared_together=seen.shared,
        entered_deepest=seen.entered,
    )
