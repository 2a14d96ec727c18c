"""What follows from a run's configuration: nodes, orders, terms, and the rows that people read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from lockcheck.agent.orders import BeginOrders
from lockcheck.client.worker import WorkerOrders
from lockcheck.config import RunConfig
from lockcheck.durations import duration_words
from lockcheck.history import Terms
from lockcheck.history.event import TRANSACTION, UNLIMITED_PERMITS
from lockcheck.nemesis import asked_for, at_holders, longest_ms, wants_faketime
from lockcheck.nemesis.course.quiet import longest_quiet_ms
from lockcheck.nodes.node import NodeFacts, NodeSpec, Role
from lockcheck.servers.base import Clock
from lockcheck.servers.kind import Kind
from lockcheck.servers.wire import Address
from lockcheck.storage import STORAGES
from lockcheck.storage.base import StorageKind

Rows = tuple[tuple[str, str], ...]


def node_specs(config: RunConfig) -> tuple[NodeSpec, ...]:
    kind = storage_of(config)
    storage = (NodeSpec("s1", Role.STORAGE, Kind(kind.server)),) if kind and kind.apart else ()
    clients = (NodeSpec(f"c{n}", Role.CLIENT) for n in range(1, config.clients + 1))
    faked = wants_faketime(config.nemesis)
    servers = (
        replace(spec, faketime=faked and bool(spec.server and spec.server.waits_by_kernel))
        for spec in config.servers_under_test()
    )
    return (*servers, *storage, *clients)


def storage_of(config: RunConfig) -> StorageKind | None:
    stores = config.workload_to_run().stores
    return STORAGES[config.backend_under_test().storage] if stores else None


def storage_node(config: RunConfig) -> NodeSpec | None:
    """The node of the storage: its own, or the first server of its kind."""
    kind = storage_of(config)
    if kind is None:
        return None
    role = Role.STORAGE if kind.apart else Role.SERVER
    found = (spec for spec in node_specs(config) if spec.role is role)
    return next(spec for spec in found if spec.kind and spec.kind.name == kind.server)


def kinds_of(config: RunConfig) -> tuple[Kind, ...]:
    """The kinds of server that a run needs: what its host must have."""
    return tuple(sorted({spec.kind for spec in node_specs(config) if spec.kind}))


def terms(config: RunConfig) -> Terms:
    """By which its history is judged: what the lock and the workload promise."""
    promises, workload = config.backend_under_test().promises, config.workload_to_run()
    reentrant = "reentrant-fenced" if promises.fencing else "reentrant"
    return Terms(
        backend=config.backend,
        server=server_named(config),
        workload=config.workload,
        guard=_guard(config),
        ttl_ms=config.ttl_ms,
        faults=asked_for(config.nemesis),
        at_holders=at_holders(config.nemesis),
        clients=config.clients,
        seed=config.seed,
        honours_validity=config.check_validity,
        own_clocks=config.lease_clock is not Clock.MONOTONIC,
        session=promises.session,
        fair=promises.fair,
        permits=promises.permits if promises.excludes else UNLIMITED_PERMITS,
        model=reentrant if promises.reentrant else "",
        stores=workload.stores,
        fewest=workload.fewest,
    )


def server_named(config: RunConfig) -> str:
    """What grants the lock, as people call it: the first kind that its backend asks for."""
    [first, *_] = config.servers_under_test()
    return first.server.title.partition(",")[0] if first.server else ""


def _guard(config: RunConfig) -> str:
    """What keeps a late write out; in a transaction of the lock's own server it is that."""
    kind = storage_of(config)
    return config.guard if kind is None or kind.apart else TRANSACTION


def plan_rows(config: RunConfig, results: Path, runtime: str) -> Rows:
    backend, workload = config.backend_under_test(), config.workload_to_run()
    storage = f", storage guarded by: {_guard(config)}" if workload.stores else ""
    return (
        ("seed", str(config.seed)),
        ("lock", f"{backend.name}: {backend.summary} ({backend.promises.words()})"),
        ("servers", in_numbers(spec.kind for spec in config.servers_under_test())),
        ("clients", f"{config.clients}, {workload.name}: {workload.summary}{storage}"),
        ("session timeout" if backend.promises.session else "lease", duration_words(config.ttl_ms)),
        *([("a lost client is let go by", backend.ended_by)] if backend.ended_by else []),
        ("work under the lock", f"about {duration_words(config.think_ms)}"),
        ("nemesis", ", ".join(config.nemesis)),
        ("time limit", duration_words(config.time_limit_ms)),
        ("runtime", runtime),
        ("results", str(results)),
    )


def in_numbers(kinds: Iterable[Kind | None]) -> str:
    """As in "3 etcd", "1 postgres, 1 pgbouncer", "1 redis=7"."""
    return ", ".join(f"{number} {kind}" for kind, number in Counter(kinds).items())


def begin_orders(config: RunConfig, nodes: dict[str, NodeFacts]) -> BeginOrders:
    specs = node_specs(config)

    def address(spec: NodeSpec) -> Address:
        return nodes[spec.name].address, spec.server.port if spec.server else 0

    contact = config.backend_under_test().contact
    servers = [s for s in specs if s.role is Role.SERVER and s.kind]
    servers = [s for s in servers if s.kind and contact in {"", s.kind.name}]
    clients = [spec.name for spec in specs if spec.role is Role.CLIENT]
    storage = storage_node(config)
    return BeginOrders(
        config=config,
        workers=tuple(
            WorkerOrders(
                node=name,
                index=index,
                config=config,
                servers=tuple(map(address, servers)),
                storage=address(storage) if storage else None,
                origin_ns=0,
            )
            for index, name in enumerate(clients)
        ),
    )


def longest_aftermath_s(config: RunConfig) -> float:
    """How long faults that are under way may last, and the quiet time after them."""
    plan = config.plan_for_faults()
    return (longest_ms(config.nemesis, plan) + longest_quiet_ms(plan)) / 1000
