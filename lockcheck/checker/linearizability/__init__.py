"""Is there an order of the operations that explains the answers?

`models`  what the objects are
`sweep`   locks, near-linear
`zones`   registers whose written values are unique, near-linear; `constraints` explains them
`search`  anything, as long as patience lasts
`decide`  one call: each object apart, by the fastest engine that can tell
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
