"""A day of a lock service: its log, and what its clients rightly or wrongly believed."""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.history import F
from lockcheck.history.event import NS_PER_MS
from tests.production.day import Day, Renewing
from tests.production.log import Row, cut, written
from tests.production.server import Data, LockServer, Mistake
from tests.production.worker import DATA, LOCKS, Belief, Keeper, Worker
from tests.simulation.network import Host, Network, Service, Task
from tests.simulation.world import Node, Steps, World

LAST_NS = 1 << 60
DRIFT_PPM = 100


@dataclass(frozen=True, slots=True)
class Lived:
    day: Day
    rows: list[Row]
    mistake: Mistake | None
    beliefs: list[Belief]
    span_ns: tuple[int, int]  # of the log

    @property
    def text(self) -> str:
        return written(self.rows, self.day)

    @property
    def ttl_ms(self) -> int | None:
        """The TTL that the user has to name."""
        return None if self.day.leases_told else self.day.ttl_ms or None

    @property
    def tells(self) -> bool:
        """Whether two clients were granted one lock: otherwise the log proves nothing."""
        granted: dict[str, set[str]] = {}
        for row in self.rows:
            if row.op == F.ACQUIRE and row.outcome == "ok":
                granted.setdefault(row.key, set()).add(row.client)
        return any(len(clients) > 1 for clients in granted.values())


def lived(day: Day, errs_from_ns: int | None = None) -> Lived:
    world = World(day.seed)
    network = Network(world)
    network.loss, network.slow_ns = day.loss, day.slow_ms * NS_PER_MS // 2
    locks = LockServer(world, day, errs_from_ns)
    hosts = {LOCKS: _host(world, network, LOCKS, locks), DATA: _host(world, network, DATA, Data())}
    rows: list[Row] = []
    workers = [
        Worker(f"worker-{n}", day, world, rows, -(-day.turns // day.workers))
        for n in range(1, day.workers + 1)
    ]

    def start(steps: Steps[None]) -> None:
        node = Node("", world.between(-DRIFT_PPM, DRIFT_PPM))
        Task(world, network, hosts, node, steps).start()

    for worker in workers:
        start(worker.life())
        if day.renewing in (Renewing.KEEPER, Renewing.UNNAMED):
            start(Keeper(worker, day).life())
    world.run(LAST_NS)
    beliefs = [belief for worker in workers for belief in worker.beliefs]
    last_ns = max(row.start_ns for row in rows)
    span_ns = int(day.begins * last_ns), int(day.ends * last_ns)
    return Lived(day, cut(rows, day, *span_ns), locks.mistake, beliefs, span_ns)


def _host(world: World, network: Network, name: str, service: Service) -> Host:
    return Host(world, network, Node(name, world.between(-DRIFT_PPM, DRIFT_PPM)), service)
