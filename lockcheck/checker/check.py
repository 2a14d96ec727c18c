"""What a check is: a pure function with a name and words for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lockcheck.checker.case import Case
from lockcheck.checker.finding import Code, Finding


@dataclass(frozen=True, slots=True)
class Check:
    code: Code
    meaning: str  # one line
    explanation: str  # for `lockcheck explain CODE`
    find: Callable[[Case], Iterable[Finding]]
