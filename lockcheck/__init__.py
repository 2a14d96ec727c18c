"""lockcheck: is your lock safe? The public names; what they need is imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockcheck.checker import judge
    from lockcheck.checker.finding import Code, Finding, Judgement, Verdict
    from lockcheck.config import RunConfig
    from lockcheck.errors import LockcheckError
    from lockcheck.history import Event, History, read_history
    from lockcheck.run import execute

__version__ = "0.1.0"

__all__ = [
    "Code",
    "Event",
    "Finding",
    "History",
    "Judgement",
    "LockcheckError",
    "RunConfig",
    "Verdict",
    "__version__",
    "execute",
    "judge",
    "read_history",
]

_HOMES = {
    "Code": "lockcheck.checker.finding",
    "Event": "lockcheck.history",
    "Finding": "lockcheck.checker.finding",
    "History": "lockcheck.history",
    "Judgement": "lockcheck.checker.finding",
    "LockcheckError": "lockcheck.errors",
    "RunConfig": "lockcheck.config",
    "Verdict": "lockcheck.checker.finding",
    "execute": "lockcheck.run",
    "judge": "lockcheck.checker",
    "read_history": "lockcheck.history",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
