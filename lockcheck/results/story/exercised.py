"""Faults that nobody felt, in words."""

from __future__ import annotations

from lockcheck.checker.finding import Judgement
from lockcheck.checker.words import amount, fault_name, moment
from lockcheck.history import FaultSpan

TOLD = 3


def not_exercised(judgement: Judgement) -> str:
    """Empty where all that were proven were felt."""
    faults = judgement.not_exercised
    told = [
        f"{fault_name(f)} at {moment(f.worked_from_ns)}: {why_not_exercised(f)}" for f in faults
    ]
    more = [f"{amount(len(told) - TOLD, 'more fault')}"] if len(told) > TOLD else []
    return "; ".join(told[:TOLD] + more)


def why_not_exercised(fault: FaultSpan) -> str:
    if fault.may_have_stood_still:
        return "meanwhile nobody asked it anything, or for what it held"
    return "meanwhile it asked and was asked nothing, and nobody asked for what it held"
