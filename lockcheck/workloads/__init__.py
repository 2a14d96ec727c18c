"""What clients do under the lock, by name: what `--workload` takes."""

from __future__ import annotations

from lockcheck.plugins import Registry
from lockcheck.workloads.base import Workload

WORKLOADS = Registry(
    "lockcheck.workloads",
    Workload,
    __name__,
    {
        "register": "register:WORKLOAD",
        "mutex": "mutex:WORKLOAD",
        "readers": "readers:WORKLOAD",
        "nested": "nested:WORKLOAD",
        "permits": "permits:WORKLOAD",
        "jobs": "jobs:WORKLOAD",
    },
)

__all__ = ["WORKLOADS", "Workload"]
