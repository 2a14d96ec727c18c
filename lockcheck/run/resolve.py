"""From a configuration to a plan: the one place where the names of a run are looked up."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from msgspec import structs

from lockcheck.backends import Backend
from lockcheck.client.claims import PATIENCE_TTLS
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.history import Terms
from lockcheck.history.event import TRANSACTION, UNLIMITED_PERMITS
from lockcheck.nemesis import ALL, NO_FAULT, Plan, Sequence, draw, parse_nemesis
from lockcheck.nemesis.base import Step
from lockcheck.nemesis.fitting import check_fit, steps_of
from lockcheck.nemesis.grammar import sequence_words
from lockcheck.nodes.node import NodeSpec, Role, in_words
from lockcheck.run.plan import RunPlan
from lockcheck.run.validation import check, check_settings
from lockcheck.servers.base import Clock
from lockcheck.servers.kind import Kind, in_versions
from lockcheck.storage import STORAGES
from lockcheck.storage.base import StorageKind
from lockcheck.workloads import WORKLOADS, Workload


def planned(config: RunConfig) -> RunPlan:
    """As `resolve`, with what `all` stands for: faults that the seed draws from those that this
    host does not lack."""
    check_settings(config)
    if ALL in map(str.strip, config.nemesis):
        without = resolve(structs.replace(config, nemesis=(NO_FAULT,)))
        config = structs.replace(config, nemesis=draw(config.nemesis, without.faults))
    return resolve(config)


def resolve(config: RunConfig) -> RunPlan:
    """Pure: it looks at no file and asks nothing. Raises a UserError with the cure."""
    check_settings(config)
    lock, workload = config.lock, WORKLOADS[config.workload]
    check(config, lock, workload)
    ours = workload.stores and not lock.promises.stores
    storage = STORAGES[lock.storage] if ours else None
    nodes = (
        *servers_in_versions(lock, config.version),
        *_storage_nodes(storage),
        *client_nodes(config.clients),
    )
    faults = as_faults_see(
        nodes,
        lock,
        name=lock.name,
        ttl_ms=config.ttl_ms,
        time_limit_ms=config.time_limit_ms,
        seed=config.seed,
        writes=workload.stores,
        keys=config.key_names(),
    )
    nemesis = tuple(map(parse_nemesis, config.nemesis))
    check_fit(nemesis, faults)
    steps = steps_of(nemesis)
    if any(step.kind.wants_faketime(step) for step in steps):
        nodes = under_faketime(nodes)
    return RunPlan(
        config=_spelled(config, nemesis),
        lock=lock,
        workload=workload,
        storage=storage,
        nodes=nodes,
        nemesis=nemesis,
        faults=faults,
        terms=_terms(config, lock, workload, nodes, steps),
    )


def _spelled(config: RunConfig, nemesis: tuple[Sequence, ...]) -> RunConfig:
    """Its faults in one spelling, wherever they are shown; the usual one stays as it is."""
    [usual] = (each.default for each in structs.fields(RunConfig) if each.name == "nemesis")
    if config.nemesis == usual:
        return config
    return structs.replace(config, nemesis=tuple(map(sequence_words, nemesis)))


# --- nodes, also of the library's clusters -------------------------------------------------------


def servers_in_versions(lock: Backend, versions: Collection[str]) -> tuple[NodeSpec, ...]:
    """The lock's servers; `versions` as --version takes them."""
    if versions and any(spec.elsewhere for spec in lock.servers):
        raise UserError(
            "--version is for servers that lockcheck starts, and these are there already",
            cure="leave it out",
        )
    asked = in_versions((spec.kind for spec in lock.servers if spec.kind), versions)
    return tuple(replace(spec, kind=spec.kind and asked[spec.kind]) for spec in lock.servers)


def client_nodes(number: int) -> tuple[NodeSpec, ...]:
    return tuple(NodeSpec(f"c{n}", Role.CLIENT) for n in range(1, number + 1))


def under_faketime(nodes: Iterable[NodeSpec]) -> tuple[NodeSpec, ...]:
    """The lock's servers whose clocks cannot be moved otherwise run under libfaketime."""
    return tuple(replace(node, faketime=_needs_faketime(node)) for node in nodes)


def _needs_faketime(node: NodeSpec) -> bool:
    server = node.server if node.role is Role.SERVER else None
    return server is not None and server.waits_by_kernel


def _storage_nodes(storage: StorageKind | None) -> tuple[NodeSpec, ...]:
    if storage is None or not storage.apart:
        return ()
    return (NodeSpec("s1", Role.STORAGE, Kind(storage.server)),)


# --- what faults and judges need to know ---------------------------------------------------------


def as_faults_see(
    nodes: Iterable[NodeSpec],
    lock: Backend | None,
    *,
    name: str,
    ttl_ms: int,
    time_limit_ms: int,
    seed: int,
    writes: bool = False,
    keys: tuple[str, ...] = (),
    faketime: bool = True,
) -> Plan:
    """A run, or a cluster of the library, as faults see it. `lock`: None for servers alone."""
    nodes = tuple(nodes)
    servers = [node for node in nodes if node.role is Role.SERVER]
    kinds = tuple(dict.fromkeys(node.kind for node in servers if node.kind))
    return Plan(
        backend=name,
        ttl_ms=ttl_ms,
        time_limit_ms=time_limit_ms,
        clients=sum(node.role is Role.CLIENT for node in nodes),
        servers=len(servers),
        stores=any(node.role is Role.STORAGE for node in nodes),
        writes=writes,
        leads=any(kind.server.leader for kind in kinds),
        independent=lock is not None and lock.independent,
        seed=seed,
        lapses_after=lock.promises.lapses_after if lock else 1.0,
        kinds=kinds,
        patience_ttls=PATIENCE_TTLS if lock and lock.promises.waits else 0,
        keys=keys,
        elsewhere=in_words(servers) if any(node.elsewhere for node in servers) else "",
        faketime=faketime,
    )


def _terms(
    config: RunConfig,
    lock: Backend,
    workload: Workload,
    nodes: Iterable[NodeSpec],
    steps: Iterable[Step],
) -> Terms:
    """What the lock and the workload promise, and what was done to them."""
    promises, steps = lock.promises, tuple(steps)
    reentrant = "reentrant-fenced" if promises.fencing else "reentrant"
    in_the_lock = workload.stores and not STORAGES[lock.storage].apart
    return Terms(
        backend=lock.name,
        server=_granting(nodes),
        accused=lock.accused,
        instead=lock.instead,
        workload=workload.name,
        guard=TRANSACTION if in_the_lock else config.guard,
        ttl_ms=config.ttl_ms,
        faults=tuple(map(str, steps)),
        at_holders=tuple(str(step) for step in steps if step.aim.at_holders),
        clients=config.clients,
        seed=config.seed,
        check_validity=config.check_validity,
        own_lease_clock=config.lease_clock is not Clock.MONOTONIC,
        session=promises.session,
        renews=promises.renews,
        tells_release=promises.tells_release,
        ends_with=promises.ends_with,
        lock_nodes=_servers(nodes),
        fair=promises.fair,
        permits=promises.permits if promises.excludes else UNLIMITED_PERMITS,
        model=reentrant if promises.reentrant else "",
        stores=workload.stores and not promises.stores,
        keeps_data=workload.stores and promises.stores,
        fewest=workload.fewest,
    )


def _servers(nodes: Iterable[NodeSpec]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes if node.role is Role.SERVER)


def _granting(nodes: Iterable[NodeSpec]) -> str:
    """What grants the lock, as people call it: the first server of the lock."""
    first = next(node for node in nodes if node.role is Role.SERVER)
    return first.server.title.partition(",")[0] if first.server else ""
