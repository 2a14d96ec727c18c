"""The judges: a history in, findings out. No I/O, no clock, no randomness."""

from __future__ import annotations

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Judgement, Verdict
from lockcheck.checker.judging import judge, judge_scan
from lockcheck.checker.linearizability import Patience
from lockcheck.checker.live import OverlapWatch
from lockcheck.checker.registry import CHECKS

__all__ = [
    "CHECKS",
    "Blame",
    "Case",
    "Check",
    "Code",
    "Culprit",
    "Finding",
    "Judgement",
    "OverlapWatch",
    "Patience",
    "Verdict",
    "judge",
    "judge_scan",
]
