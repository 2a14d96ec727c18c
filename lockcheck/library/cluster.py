"""A cluster for a user's own test: real servers, and nodes for its clients.

This process cannot reach the nodes' networks (see `compose/`): a test runs programs on nodes, or
forwards a port on loopback to a server.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from lockcheck.backends import BACKENDS
from lockcheck.compose.choose import RUNTIMES, choose_runtime
from lockcheck.compose.launching import CLIENT_IN_IMAGE, CLIENT_ON_HOST
from lockcheck.compose.runtime import Cluster as Nodes
from lockcheck.compose.runtime import ClusterPlan
from lockcheck.errors import UserError
from lockcheck.library.faults import Fault, Faults
from lockcheck.library.forwarding import Forwarding
from lockcheck.library.log import Log
from lockcheck.library.programs import Program
from lockcheck.library.switchboard import Switchboard
from lockcheck.nemesis import Plan
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.run.experiment import await_ready
from lockcheck.runs.store import Store
from lockcheck.servers.kind import Kind, in_versions
from lockcheck.servers.versions import check_versions
from lockcheck.signals import ignoring_signals

RUNTIME_VARIABLE = "LOCKCHECK_RUN_RUNTIME"
MOST_CLIENTS = 100
TTL_MS = 1000  # for faults that depend on a lease, which is unknown here
say = logging.getLogger("lockcheck").info


class Cluster:
    """The cluster that `lockcheck.cluster(...)` starts; the end of the `with` block ends it."""

    def __init__(
        self,
        nodes: Nodes,
        specs: Sequence[NodeSpec],
        plan: Plan,
        *,
        runtime: str,
        folder: Path,
        forwarding: Forwarding,
    ) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._link = nodes.agent
        self.log = Log()
        self._switchboard = Switchboard(nodes.agent, self.log.note)
        self._forwarding = forwarding
        self.runtime = runtime
        self.folder = folder  # with the output of each node, in nodes/NAME/output.log
        self.servers = self._named(Role.SERVER)
        self.storage = "".join(self._named(Role.STORAGE))
        self.clients = self._named(Role.CLIENT)
        # For `run`: a Python with redis-py and lockcheck in it.
        self.python = CLIENT_ON_HOST[0] if runtime == "local" else CLIENT_IN_IMAGE[0]
        self.versions = dict(nodes.versions)
        self.faults = Faults(self._link, self.log, plan, tuple(self._specs), self.clients)

    def _named(self, role: Role) -> tuple[str, ...]:
        return tuple(spec.name for spec in self._specs.values() if spec.role is role)

    def run(
        self, node: str, command: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> Program:
        """Runs your own program on a client's node: faults at the node strike it. It reaches the
        servers by their names, at `port(name)`."""
        self._check(node, self.clients)
        return Program(self._switchboard, node, command, environment or {})

    def port(self, server: str) -> int:
        self._check(server, (*self.servers, self.storage))
        found = self._specs[server].server
        return found.port if found else 0

    def forward(self, server: str, *, via: str) -> tuple[str, int]:
        """An address on loopback for this process's own code, as if it ran on the node `via`: a cut
        of that node cuts its connections."""
        self._check(via, self.clients)
        return self._forwarding.open(self._switchboard, via, server, self.port(server))

    def fault(self, text: str, *nodes: str) -> Fault:
        """As for `--nemesis`: `partition:leader,one-way=in`; or at the named nodes."""
        return self.faults.of(text, *nodes)

    def _check(self, name: str, known: tuple[str, ...]) -> None:
        if name not in known:
            raise UserError(f"unknown name {name!r}", cure=f"choose from: {', '.join(known)}")


@contextmanager
def cluster(
    lock: str,
    *,
    servers: int | None = None,
    clients: int = 1,
    storage: str = "",
    version: Sequence[str] = (),
    image: str = "",
    runtime: str = "",
    folder: Path | None = None,
    seed: int = 0,
    faketime: bool = False,
) -> Iterator[Cluster]:
    """The servers of one of lockcheck's locks (`redlock`), or a number of servers of a kind
    (`etcd=3.4`, with `servers=3`); nodes for clients, c1, c2 ...; and a server that the lock
    protects.

    `image` is the image of the clients' nodes in `docker`, instead of lockcheck's own. Without a
    `folder`, the nodes' output is not kept. With `faketime`, servers that are JVMs run under
    libfaketime: otherwise their monotonic clocks cannot be moved.
    """
    specs = _specs(lock, servers, clients, storage, version)
    if faketime:
        jvms = [s for s in specs if s.role is Role.SERVER and s.server and s.server.waits_by_kernel]
        specs = tuple(replace(spec, faketime=spec in jvms) for spec in specs)
    kinds = sorted({spec.kind for spec in specs if spec.kind})
    asked = runtime or os.environ.get(RUNTIME_VARIABLE, "auto")
    if asked not in (*RUNTIMES, "auto"):
        raise UserError(f"unknown runtime {asked!r}", cure=f"choose from: {', '.join(RUNTIMES)}")
    chosen, _why = choose_runtime(asked, kinds)
    with ExitStack() as stack:
        out = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lockcheck-")))
        store = Store.create(out)
        held = stack.enter_context(store.held())
        plan = ClusterPlan(store.run_id, specs, held, idle_clients=True, client_image=image)
        forwarding = stack.enter_context(closing(Forwarding()))
        nodes = chosen.start(plan, say)
        stack.enter_context(_ending(nodes, collect=folder is not None))
        check_versions(kinds, nodes.versions)
        await_ready(nodes)
        faults_plan = _plan(lock, specs, seed)
        nodes.agent.ask("by_hand", faults_plan)
        yield Cluster(
            nodes,
            specs,
            faults_plan,
            runtime=chosen.name,
            folder=store.folder,
            forwarding=forwarding,
        )


def _specs(
    lock: str, servers: int | None, clients: int, storage: str, version: Sequence[str]
) -> tuple[NodeSpec, ...]:
    if not 0 < clients <= MOST_CLIENTS:
        raise UserError(f"{clients} clients are not possible", cure=f"from 1 to {MOST_CLIENTS}")
    beside = [NodeSpec(f"c{number}", Role.CLIENT) for number in range(1, clients + 1)]
    if storage:
        beside.insert(0, NodeSpec("s1", Role.STORAGE, Kind.parse(storage)))
    return (*_servers(lock, servers, version), *beside)


def _servers(lock: str, servers: int | None, version: Sequence[str]) -> Sequence[NodeSpec]:
    if servers is None and lock in BACKENDS:
        specs = BACKENDS[lock].servers
        asked = in_versions((spec.kind for spec in specs if spec.kind), version)
        return [replace(spec, kind=spec.kind and asked[spec.kind]) for spec in specs]
    kind = Kind.parse(lock)
    letter = "n" if lock[0] in "cs" else lock[0]  # clients are c1, c2 ..., and the storage is s1
    return [NodeSpec(f"{letter}{n}", Role.SERVER, kind) for n in range(1, (servers or 1) + 1)]


def _plan(lock: str, specs: Sequence[NodeSpec], seed: int) -> Plan:
    servers = [spec for spec in specs if spec.role is Role.SERVER]
    return Plan(
        backend=lock,
        ttl_ms=TTL_MS,
        time_limit_ms=1 << 40,
        clients=sum(spec.role is Role.CLIENT for spec in specs),
        servers=len(servers),
        stores=any(spec.role is Role.STORAGE for spec in specs),
        leads=any(spec.server and spec.server.leader for spec in servers),
        seed=seed,
        kinds=tuple(dict.fromkeys(spec.kind for spec in servers if spec.kind)),
        faketime=any(spec.faketime for spec in servers),
    )


@contextmanager
def _ending(nodes: Nodes, *, collect: bool) -> Iterator[None]:
    """Ends the nodes on every way out; a second Ctrl-C is ignored meanwhile."""
    try:
        yield
    finally:
        with ignoring_signals(), closing(nodes):
            if collect:
                nodes.collect()
