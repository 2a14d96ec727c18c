"""What clients do under the lock, by name: what `--workload` takes."""

from __future__ import annotations

from lockcheck.plugins import Registry
from lockcheck.workloads import jobs, mutex, nested, permits, readers, register
from lockcheck.workloads.base import Workload

WORKLOADS = Registry(
    "lockcheck.workloads",
    Workload,
    (
        register.WORKLOAD,
        mutex.WORKLOAD,
        readers.WORKLOAD,
        nested.WORKLOAD,
        permits.WORKLOAD,
        jobs.WORKLOAD,
    ),
)

__all__ = ["WORKLOADS", "Workload"]
