"""What a run's configuration comes to: nodes, orders, terms, and the rows that people read."""

from __future__ import annotations

from pathlib import Path

from lockcheck.backends.redis_server import redis_server
from lockcheck.compose.orders import BeginOrders
from lockcheck.config import RunConfig, duration_words
from lockcheck.history import Terms
from lockcheck.nemesis import FAULTS, NemesisSpec, parse_nemesis
from lockcheck.nodes import Node, NodeSpec, Role
from lockcheck.workloads.worker import WorkerOrders

Rows = tuple[tuple[str, str], ...]


def node_specs(config: RunConfig) -> tuple[NodeSpec, ...]:
    storage = (redis_server("s1", Role.STORAGE),) if config.workload_to_run().needs_storage else ()
    clients = (NodeSpec(f"c{n}", Role.CLIENT, "client") for n in range(1, config.clients + 1))
    return (*config.backend_under_test().servers, *storage, *clients)


def terms(config: RunConfig) -> Terms:
    return Terms(
        backend=config.backend,
        workload=config.workload,
        guard=config.guard,
        ttl_ms=config.ttl_ms,
        faults=tuple(str(spec) for spec in nemesis_specs(config)),
        clients=config.clients,
        seed=config.seed,
        honours_validity=config.check_validity,
    )


def plan_rows(config: RunConfig, results: Path, runtime: str) -> Rows:
    backend, workload = config.backend_under_test(), config.workload_to_run()
    storage = f", storage guarded by: {config.guard}" if workload.needs_storage else ""
    return (
        ("seed", str(config.seed)),
        ("lock", f"{backend.name}: {backend.summary} ({backend.promises.words()})"),
        ("servers", f"{len(backend.servers)}"),
        ("clients", f"{config.clients}, {workload.name}: {workload.summary}{storage}"),
        ("lease", duration_words(config.ttl_ms)),
        ("work under the lock", f"about {duration_words(config.think_ms)}"),
        ("nemesis", ", ".join(config.nemesis)),
        ("time limit", duration_words(config.time_limit_ms)),
        ("runtime", runtime),
        ("results", str(results)),
    )


def begin_orders(config: RunConfig, nodes: dict[str, Node]) -> BeginOrders:
    specs = {spec.name: spec for spec in node_specs(config)}

    def addresses(role: Role) -> tuple[tuple[str, int], ...]:
        return tuple(
            (nodes[name].address, spec.port)
            for name, spec in specs.items()
            if spec.role is role and spec.port is not None
        )

    clients = [name for name, spec in specs.items() if spec.role is Role.CLIENT]
    storages = addresses(Role.STORAGE)
    return BeginOrders(
        workers=tuple(
            WorkerOrders(
                node=name,
                index=index,
                clients=len(clients),
                backend=config.backend,
                servers=addresses(Role.SERVER),
                storage=storages[0] if storages else None,
                workload=config.workload,
                keys=config.key_names(),
                guard=config.guard,
                ttl_ms=config.ttl_ms,
                think_ms=config.think_ms,
                check_validity=config.check_validity,
                seed=config.seed,
                origin_ns=0,
            )
            for index, name in enumerate(clients)
        ),
        nemesis=config.nemesis,
        ttl_ms=config.ttl_ms,
        seed=config.seed,
        time_limit_s=config.time_limit_ms / 1000,
    )


def longest_fault_s(config: RunConfig) -> float:
    durations = [FAULTS[s.fault].duration_ms(config.ttl_ms) / 1000 for s in nemesis_specs(config)]
    return max(durations, default=0.0)


def nemesis_specs(config: RunConfig) -> list[NemesisSpec]:
    return [spec for text in config.nemesis if (spec := parse_nemesis(text)) is not None]
