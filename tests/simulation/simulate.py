"""Puts a simulated run together: a plan in, a history out."""

from __future__ import annotations

from lockcheck.client.recorder import Recorder
from lockcheck.errors import UserError
from lockcheck.history import Event, History
from lockcheck.history.event import NS_PER_MS, terms_event
from tests.simulation.client import STORAGE_NODE, Client
from tests.simulation.keeper import Keeper
from tests.simulation.locks import LOCKS, LockKind
from tests.simulation.locks.base import Caller
from tests.simulation.nemesis import Nemesis
from tests.simulation.network import Host, Network, Task
from tests.simulation.plan import Plan
from tests.simulation.recorder import recorder_of
from tests.simulation.storage import Storage
from tests.simulation.world import Node, World

# How long a run goes on for what was begun: clients that wait longer are never answered.
LEASES_AFTER = 20


def simulate(plan: Plan) -> History:
    return History.of(simulated_events(plan), source=f"simulation {plan.seed}")


def simulated_events(plan: Plan) -> list[Event]:
    return _Run(plan).events()


def _kind(name: str) -> LockKind:
    if name not in LOCKS:
        raise UserError(f"no lock {name!r} is simulated", cure=f"choose from: {', '.join(LOCKS)}")
    return LOCKS[name]


class _Run:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._kind = _kind(plan.lock)
        self._world = World(plan.seed)
        self._network = Network(self._world)
        kind = self._kind
        terms = plan.terms(fair=kind.fair, permits=kind.permits, reentrant=kind.levels > 1)
        self._told: list[Event] = [terms_event(terms)]
        self._storage = Storage(plan.guard)
        self._servers = self._lock_servers(self._kind)
        self._nodes = [self._node(f"c{n + 1}") for n in range(plan.clients)]
        self._nemesis = Nemesis(
            plan, self._world, self._network, self._nodes, self._servers, record=self._told.append
        )

    def events(self) -> list[Event]:
        hosts = {host.node.name: host for host in (*self._servers, self._storage_host())}
        for index, node in enumerate(self._nodes):
            recorder = recorder_of(self._world, self._record, node.name, index, len(self._nodes))
            client = self._client(node, recorder)
            Task(self._world, self._network, hosts, node, client.life()).start()
            if self._plan.keeper_ms:
                steps = self._keeper(node, client, recorder).life()
                Task(self._world, self._network, hosts, node, steps).start()
        self._nemesis.start()
        self._world.run((self._plan.until_ms + LEASES_AFTER * self._plan.ttl_ms) * NS_PER_MS)
        return [*self._told, *self._storage.ledger(self._world.now_ns)]

    def _lock_servers(self, kind: LockKind) -> list[Host]:
        return [
            Host(self._world, self._network, self._node(f"r{n + 1}"), kind.serve(self._world))
            for n in range(kind.servers)
        ]

    def _storage_host(self) -> Host:
        node = Node(STORAGE_NODE, sheltered=True)
        return Host(self._world, self._network, node, self._storage)

    def _node(self, name: str) -> Node:
        drift_ppm = self._plan.drift_ppm
        return Node(name, self._world.between(-drift_ppm, drift_ppm))

    def _client(self, node: Node, recorder: Recorder) -> Client:
        caller = self._caller(node, recorder)
        return Client(self._plan, self._world, self._kind, caller, recorder)

    def _keeper(self, node: Node, client: Client, recorder: Recorder) -> Keeper:
        lock = self._kind.connect(self._caller(node, recorder))
        return Keeper(self._plan, self._world, lock, client, recorder)

    def _caller(self, node: Node, recorder: Recorder) -> Caller:
        servers = tuple(host.node.name for host in self._servers)
        return Caller(self._world, node, self._plan.ttl_ms, servers, recorder.queued)

    def _record(self, event: Event) -> None:
        self._told.append(event)
        self._nemesis.observe(event)
