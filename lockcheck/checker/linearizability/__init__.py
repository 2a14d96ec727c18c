"""Decides whether some order of the operations explains the answers (linearizability).

`models`  the objects: locks, registers, sets, counters
`sweep`   locks, near-linear
`zones`   registers whose written values are unique, near-linear; `constraints` explains them
`search`  any object, as long as patience lasts
`decide`  one call: each object by itself, by the fastest engine that can decide it
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
