"""lockcheck: is your lock safe? The public names; what they need is imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockcheck.checker.finding import Code, Finding, Verdict
    from lockcheck.config import RunConfig
    from lockcheck.errors import LockcheckError
    from lockcheck.history import Event, History, read_history
    from lockcheck.library.cluster import Cluster, cluster
    from lockcheck.library.faults import Fault
    from lockcheck.library.log import Log
    from lockcheck.library.programs import Program
    from lockcheck.results.judgement import Judgement, judge
    from lockcheck.run.execute import execute
    from lockcheck.runs.record import Record, read_record

__version__ = "0.1.0"

__all__ = [
    "Cluster",
    "Code",
    "Event",
    "Fault",
    "Finding",
    "History",
    "Judgement",
    "LockcheckError",
    "Log",
    "Program",
    "Record",
    "RunConfig",
    "Verdict",
    "__version__",
    "cluster",
    "execute",
    "judge",
    "read_history",
    "read_record",
]

_HOMES = {
    "Cluster": "lockcheck.library.cluster",
    "Code": "lockcheck.checker.finding",
    "Event": "lockcheck.history",
    "Fault": "lockcheck.library.faults",
    "Finding": "lockcheck.checker.finding",
    "History": "lockcheck.history",
    "Judgement": "lockcheck.results.judgement",
    "LockcheckError": "lockcheck.errors",
    "Log": "lockcheck.library.log",
    "Program": "lockcheck.library.programs",
    "Record": "lockcheck.runs.record",
    "RunConfig": "lockcheck.config",
    "Verdict": "lockcheck.checker.finding",
    "cluster": "lockcheck.library.cluster",
    "execute": "lockcheck.run.execute",
    "judge": "lockcheck.results.judgement",
    "read_history": "lockcheck.history",
    "read_record": "lockcheck.runs.record",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
