"""The judges: a history in, findings out. No I/O, no clock, no randomness.

`CHECKS` is the registry: the checks that `judge` runs, and what `lockcheck explain` knows.
"""

from __future__ import annotations

from lockcheck.checker import foreign_release, lost_update, overlap, soundness, stale_write
from lockcheck.checker.check import Check
from lockcheck.checker.counts import count
from lockcheck.checker.finding import (
    Blame,
    Code,
    Counts,
    Culprit,
    Finding,
    Judgement,
    Verdict,
)
from lockcheck.checker.live import OverlapWatch
from lockcheck.history import History

CHECKS: dict[str, Check] = {
    check.code.value: check
    for check in (overlap.CHECK, stale_write.CHECK, lost_update.CHECK, foreign_release.CHECK)
}


def judge(history: History) -> Judgement:
    findings: list[Finding] = []
    doubts: list[str] = []
    for code, check in CHECKS.items():
        # A checker that crashed is unknown, never ok: whatever it raised, the others still judge.
        try:
            findings += check.find(history)
        except Exception as error:  # noqa: BLE001
            doubts.append(f"the check {code} crashed: {type(error).__name__}: {error}")
    try:
        doubts += soundness.doubts(history)
    except Exception as error:  # noqa: BLE001 - as above
        doubts.append(f"the check of the run itself crashed: {type(error).__name__}: {error}")
    doubts += soundness.doubts_of_findings(findings)
    effects = [finding.effect for finding in findings]
    return Judgement(
        verdict=Verdict.merge([*effects, Verdict.UNKNOWN] if doubts else effects),
        findings=tuple(sorted(findings, key=lambda finding: finding.time_ns)),
        doubts=tuple(dict.fromkeys(doubts)),
        counts=count(history),
    )


__all__ = [
    "CHECKS",
    "Blame",
    "Check",
    "Code",
    "Counts",
    "Culprit",
    "Finding",
    "Judgement",
    "OverlapWatch",
    "Verdict",
    "judge",
]
