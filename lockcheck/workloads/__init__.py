"""What clients do under the lock, by name: what `--workload` takes."""

from __future__ import annotations

from lockcheck.workloads import mutex, register
from lockcheck.workloads.base import Workload

WORKLOADS: dict[str, Workload] = {
    workload.name: workload for workload in (register.WORKLOAD, mutex.WORKLOAD)
}

__all__ = ["WORKLOADS", "Workload"]
