"""Doubts, as they are told beside a verdict."""

from __future__ import annotations

from lockcheck.checker.finding import Judgement, Verdict
from lockcheck.checker.whole_run.soundness import TOO_FEW
from lockcheck.words import sentence


def doubts_told(judgement: Judgement) -> tuple[str, ...]:
    """All of them; of an `unknown` without the first, which the headline has.

    Beside a violation what makes the history short is told once: it could only have spoilt an `ok`.
    """
    doubts = judgement.doubts
    if judgement.verdict is not Verdict.VIOLATION:
        return tuple(map(sentence, doubts[judgement.verdict is Verdict.UNKNOWN :]))
    short = [d[len(TOO_FEW) :] for d in doubts if d.lower().startswith(TOO_FEW)]
    told = [sentence(d) for d in doubts if not d.lower().startswith(TOO_FEW)]
    if short:
        why = "; ".join(short)
        told.insert(0, f"The run was short: enough for a violation, but not for an OK ({why}).")
    return tuple(told)
