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
from pathlib import Path

from lockcheck.agent.outlet import Outlet, check_reachable
from lockcheck.backends import BACKENDS
from lockcheck.backends.program.words import servers_of
from lockcheck.compose.choose import RUNTIMES, choose_runtime
from lockcheck.compose.launching import CLIENT_IN_IMAGE, CLIENT_ON_HOST
from lockcheck.compose.runtime import Cluster as Nodes
from lockcheck.compose.runtime import ClusterPlan, Runtime
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.library.faults import Fault, Faults
from lockcheck.library.forwarding import Forwarding
from lockcheck.library.given import check_number, check_text, command_words, texts, variables
from lockcheck.library.log import Log
from lockcheck.library.programs import Program
from lockcheck.library.switchboard import Switchboard
from lockcheck.library.termination import dying_after, postponed
from lockcheck.nemesis import Plan
from lockcheck.nodes.node import NodeSpec, Role, kinds_to_start, server_nodes
from lockcheck.run.experiment import await_ready
from lockcheck.run.resolve import as_faults_see, client_nodes, servers_in_versions, under_faketime
from lockcheck.runs.store import Store
from lockcheck.servers.kind import Kind
from lockcheck.servers.versions import check_versions

RUNTIME_VARIABLE = "LOCKCHECK_RUN_RUNTIME"
MOST_OF_A_ROLE = 100  # servers, and clients: together they fit into one network
LARGEST_SEED = (1 << 63) - 1
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
        self.versions = dict(nodes.versions)
        self.log = Log(versions=self.versions)
        self._switchboard = Switchboard(nodes.agent, self.log.note)
        self._forwarding = forwarding
        self.runtime = runtime
        self.folder = folder  # with the output of each node, in nodes/NAME/output.log
        self.servers = self._named(Role.SERVER)
        self.storage = "".join(self._named(Role.STORAGE))
        self.clients = self._named(Role.CLIENT)
        # For `run`: a Python with redis-py and lockcheck in it.
        self.python = CLIENT_ON_HOST[0] if runtime == "local" else CLIENT_IN_IMAGE[0]
        self.faults = Faults(self._link, self.log, plan, tuple(self._specs), self.clients)

    def __repr__(self) -> str:
        return f"<Cluster {', '.join(self._specs)}: {self.runtime}>"

    def _named(self, role: Role) -> tuple[str, ...]:
        return tuple(spec.name for spec in self._specs.values() if spec.role is role)

    def run(
        self,
        node: str,
        command: Sequence[str | os.PathLike[str]],
        *,
        environment: Mapping[str, str | os.PathLike[str]] | None = None,
    ) -> Program:
        """Runs your own program on a client's node: faults at the node strike it. It reaches the
        servers by their names, at `port(name)`."""
        self._check(node, self.clients)
        words, given = command_words(command), variables(environment or {})
        return Program(self._switchboard, node, words, given)

    def port(self, server: str) -> int:
        self._check(server, tuple(filter(None, (*self.servers, self.storage))))
        return self._specs[server].port

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
    program_image: str = "",
    client_folder: str = "",
    runtime: str = "",
    folder: str | os.PathLike[str] | None = None,
    seed: int = 0,
    faketime: bool = False,
) -> Iterator[Cluster]:
    """The servers of one of lockcheck's locks (`redlock`), or a number of servers of a kind
    (`etcd=3.4*3`, or `etcd=3.4` with `servers=3`), or servers that are there already
    (`redis=10.0.0.7:6379`); nodes for clients, c1, c2 ...; and a server that the lock protects.

    In `docker`, `image` is that of the clients' nodes, instead of lockcheck's own; `program_image`
    that of a second container on each, in which `run` runs programs; and `client_folder` a folder
    that they have, read-only, as /lockcheck/client. Without a `folder`, the nodes' output is not
    kept. With `faketime`, servers that are JVMs run under
    libfaketime: otherwise their monotonic clocks cannot be moved.
    """
    check_text(lock, "the name of a lock")
    of_docker = {
        "image": image,
        "program_image": program_image,
        "client_folder": client_folder,
    }
    for what, text in {"storage": storage, "runtime": runtime, **of_docker}.items():
        check_text(text or "", what)
    versions = texts(version, "version", cure=f"version=[{version!r}]")
    asked = RunConfig(backend=lock, version=versions, clients=clients, seed=seed)
    specs, faults = plan_cluster(asked, servers=servers, storage=storage or "", faketime=faketime)
    kinds = kinds_to_start(specs)
    check_reachable(specs)
    chosen = _runtime(runtime, kinds)
    given = [name for name, text in of_docker.items() if text]
    if given and chosen.name != "docker":
        raise UserError(
            f"{chosen.name} has no containers", cure=f'runtime="docker", or no {given[0]}='
        )
    with ExitStack() as stack:
        stack.enter_context(dying_after())
        if folder is None:
            out = stack.enter_context(tempfile.TemporaryDirectory(prefix="lockcheck-"))
        store = Store.create(Path(out if folder is None else folder))
        plan = ClusterPlan(
            store.run_id,
            specs,
            store.folder,
            idle_clients=True,
            client_image=image or "",
            client_folder=client_folder or "",
            program_image=program_image or "",
        )
        forwarding = stack.enter_context(closing(Forwarding()))
        nodes = stack.enter_context(_ending(chosen.start(plan, say), collect=folder is not None))
        check_versions(kinds, nodes.versions)
        await_ready(nodes)
        nodes.agent.ask("by_hand", faults)
        stack.enter_context(closing(Outlet(nodes.agent, specs)))
        yield Cluster(
            nodes, specs, faults, runtime=chosen.name, folder=store.folder, forwarding=forwarding
        )


@contextmanager
def _ending(nodes: Nodes, *, collect: bool) -> Iterator[Nodes]:
    try:
        yield nodes
    finally:
        with postponed(), closing(nodes):
            if collect:
                nodes.collect()


def plan_cluster(
    asked: RunConfig, *, servers: int | None, storage: str, faketime: bool
) -> tuple[tuple[NodeSpec, ...], Plan]:
    """Its nodes, and the cluster as faults see it. `servers`: so many of a kind, and no lock."""
    check_number(asked.clients, "clients", most=MOST_OF_A_ROLE)
    check_number(asked.seed, "seed", least=0, most=LARGEST_SEED)
    if servers is not None:
        check_number(servers, "servers", most=MOST_OF_A_ROLE)
    lock = asked.lock if servers is None and asked.backend in BACKENDS else None
    if asked.version and not lock:
        raise UserError(
            f"version= is for the servers of a lock, and {asked.backend} with a number of servers "
            "is none",
            cure=f'name it with the servers: "{asked.version[0]}"',
        )
    nodes = (
        *(servers_in_versions(lock, asked.version) if lock else _servers(asked.backend, servers)),
        *([NodeSpec("s1", Role.STORAGE, Kind.parse(storage))] if storage else []),
        *client_nodes(asked.clients),
    )
    if faketime:
        nodes = under_faketime(nodes)
    faults = as_faults_see(
        nodes,
        lock,
        name=asked.backend,
        ttl_ms=TTL_MS,
        time_limit_ms=1 << 40,
        seed=asked.seed,
        faketime=any(node.faketime for node in nodes),
    )
    return nodes, faults


def _servers(text: str, number: int | None) -> tuple[NodeSpec, ...]:
    if ":" in text or ("*" in text and number is None):
        found = servers_of(text)
        if number not in (None, len(found)):
            raise UserError(f"{text} is {len(found)}, not {number}", cure="leave servers= out")
        return found
    return server_nodes(Kind.parse(text), number or 1)


def _runtime(asked: str, kinds: Sequence[Kind]) -> Runtime:
    wanted = asked or os.environ.get(RUNTIME_VARIABLE) or "auto"
    if wanted not in (*RUNTIMES, "auto"):
        where = "" if asked else f" in {RUNTIME_VARIABLE}"
        raise UserError(
            f"unknown runtime {wanted!r}{where}", cure=f"choose from: {', '.join(RUNTIMES)}"
        )
    return choose_runtime(wanted, kinds)[0]
