"""Decides whether some order of the operations explains the answers (linearizability).

`decide` judges each object by itself, by the fastest engine that can: see docs/design/engines.md.
"""

from __future__ import annotations

from lockcheck.checker.linearizability.answer import Answer, Because, Patience, endless
from lockcheck.checker.linearizability.decide import Decision, decide
from lockcheck.checker.linearizability.models import MODELS, Call, Illegal, Model, semaphore

__all__ = [
    "MODELS",
    "Answer",
    "Because",
    "Call",
    "Decision",
    "Illegal",
    "Model",
    "Patience",
    "decide",
    "endless",
    "semaphore",
]
