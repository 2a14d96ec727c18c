"""A run as it will be: everything that its configuration names, looked up once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lockcheck.backends import BACKENDS, Backend
from lockcheck.config import RunConfig
from lockcheck.history import Terms
from lockcheck.nemesis import FAULTS, Plan, Sequence
from lockcheck.nemesis.course.quiet import longest_quiet_ms
from lockcheck.nemesis.fitting import longest_ms, steps_of
from lockcheck.nodes.node import NodeSpec, Role, kinds_to_start
from lockcheck.plugins import Registry
from lockcheck.servers.kind import Kind
from lockcheck.storage import STORAGES
from lockcheck.storage.base import Guard, StorageKind
from lockcheck.workloads import WORKLOADS, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A value: made by `resolve`, compared and printed, and never asked for a name again."""

    config: RunConfig
    lock: Backend
    workload: Workload
    storage: StorageKind | None  # None: its clients write nothing
    nodes: tuple[NodeSpec, ...]
    nemesis: tuple[Sequence, ...]
    faults: Plan  # the run as faults see it
    terms: Terms  # by which its history is judged

    @property
    def servers(self) -> tuple[NodeSpec, ...]:
        """Of the lock, in the versions that were asked for."""
        return tuple(node for node in self.nodes if node.role is Role.SERVER)

    @property
    def contacts(self) -> tuple[NodeSpec, ...]:
        """The servers that clients connect to."""
        kind = self.lock.contact
        return tuple(server for server in self.servers if not kind or server.runs(kind))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Of all its servers, the storage's among them: what its host must have."""
        return kinds_to_start(self.nodes)

    @property
    def storage_node(self) -> NodeSpec | None:
        """The storage's own node, or the first of the lock's servers that holds the data."""
        if self.storage is None:
            return None
        role = Role.STORAGE if self.storage.apart else Role.SERVER
        kind = self.storage.server
        return next(node for node in self.nodes if node.role is role and node.runs(kind))

    @property
    def is_guarded(self) -> bool:
        """Whether mistakes of the lock can do no harm: the storage checks each write."""
        in_the_lock = self.storage is not None and not self.storage.apart
        return self.config.guard is not Guard.NONE or in_the_lock

    @property
    def stops_at_overlaps(self) -> bool:
        """Not for a lock of the user: what comes after the first overlap shows more of it."""
        return self.config.stop_on_violation and not self.is_guarded and not self.config.client

    @property
    def outlives_its_lease(self) -> bool:
        """Whether the work under the lock takes longer than a lease that nothing renews."""
        promises = self.lock.promises
        kept_alive = promises.session or promises.renews or promises.extends
        kept_alive = kept_alive or self.config.check_validity
        return not kept_alive and self.config.work_ms[1] >= self.config.ttl_ms

    @property
    def longest_aftermath_s(self) -> float:
        """How long faults that are under way may last, and the quiet time after them."""
        return (longest_ms(self.nemesis, self.faults) + longest_quiet_ms(self.faults)) / 1000

    @property
    def packages(self) -> tuple[str, ...]:
        """The installed packages from which clients and agent need something."""
        used: list[tuple[Registry[Any], str]] = [(WORKLOADS, self.workload.name)]
        used += [(FAULTS, step.kind.name) for step in steps_of(self.nemesis)]
        used += [(STORAGES, self.storage.name)] if self.storage else []
        used += [] if self.config.client else [(BACKENDS, self.lock.name)]
        return tuple(sorted({registry.package_of(name) for registry, name in used} - {""}))
