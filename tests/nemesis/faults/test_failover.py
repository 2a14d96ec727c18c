"""A primary dies before its replica has the lock: with real servers, replicas and Sentinels."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from lockcheck.client.aims import AIMS
from lockcheck.errors import FaultError
from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.base import Strike
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.network.links import Links
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.namespaces import enter_network
from lockcheck.nodes.node import Node, NodeSpec, Role
from lockcheck.nodes.waiting import wait_until
from lockcheck.servers.asking.answer import answers
from lockcheck.servers.asking.redis import Reply
from lockcheck.servers.asking.replicas import RedisGroup
from lockcheck.servers.base import Here, Server
from lockcheck.servers.kind import Kind
from lockcheck.servers.redis_replicated import REDIS_REPLICATED
from lockcheck.servers.redis_sentinel import REDIS_SENTINEL
from tests.backends.servers import found
from tests.nemesis.client_events import grant
from tests.nemesis.real import RealFleet, RealNode, cluster

pytestmark = pytest.mark.cluster

Nodes = dict[str, RealNode]
KINDS = {"r": REDIS_REPLICATED, "w": REDIS_SENTINEL}
PLAN = Plan(backend="redis-failover", ttl_ms=5000, time_limit_ms=60_000, clients=2, servers=6)


class RedisFleet(RealFleet):
    """Servers as in a run, known to each other by their addresses."""

    def __init__(self, nodes: Nodes, folder: Path) -> None:
        super().__init__(nodes)
        self._folder = folder

    async def start(self, name: str, *, data: bool = True) -> None:
        node, kind, folder = self.nodes[name], KINDS[name[0]], self._folder / name
        servers = {
            each.name: tuple(n.address for n in self.nodes.values() if n.spec.server is each)
            for each in KINDS.values()
        }
        here = Here(node.address, servers[kind.name], str(folder), found(kind), servers)
        if not folder.exists():
            folder.mkdir()
            for file, text in kind.files(here).items():
                (folder / file).write_text(text)
        node.process = launched(kind.command(here), folder, node)
        if kind is REDIS_REPLICATED:
            await self.ready(name)
        node.down = False

    async def ready(self, name: str) -> None:
        node, kind = self.nodes[name], KINDS[name[0]]
        async with asyncio.timeout(20):
            for _ in count():
                if await answers(node, (node.address, kind.port), kind.ready):
                    return
                await asyncio.sleep(0.02)

    async def leader(self) -> str | None:
        kind: Server = REDIS_REPLICATED
        assert kind.leader is not None
        for name in ("r1", "r2", "r3"):
            node = self.nodes[name]
            if not node.down and await answers(node, (node.address, kind.port), kind.leader):
                return name
        return None


def launched(command: tuple[str, ...], folder: Path, node: RealNode) -> subprocess.Popen[bytes]:
    with (folder / "output.log").open("ab") as log:
        return subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: enter_network(node.network),  # noqa: PLW1509 - one thread
        )


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with cluster("r1", "r2", "r3", "w1", "w2", "w3", "c1", "c2") as nodes:
        for name, node in nodes.items():
            if name[0] in KINDS:
                node.spec = NodeSpec(name, Role.SERVER, Kind(KINDS[name[0]].name))
        yield nodes


@pytest.fixture
def scene(nodes: Nodes, tmp_path: Path) -> Scene:
    for client in ("c1", "c2"):
        (tmp_path / client / AIMS).mkdir(parents=True)
    fleet = RedisFleet(nodes, tmp_path)
    return Scene(nodes, fleet, PLAN, Holders(tmp_path), Links(nodes))


async def start_all(scene: Scene) -> None:
    fleet = scene.fleet
    assert isinstance(fleet, RedisFleet)
    servers = scene.names(Role.SERVER)
    for name in servers:
        await fleet.start(name)
    async with asyncio.TaskGroup() as all_ready:  # Sentinels wait for each other
        for name in servers:
            all_ready.create_task(fleet.ready(name))


def group_in(scene: Scene) -> RedisGroup:
    return RedisGroup(scene.nodes.values(), scene.a_client)


def failover(scene: Scene, words: str) -> Strike:
    (step,) = parse_nemesis(f"failover:{words}")
    return step.kind.strike(step, ("r1",), scene)


class Clients:
    """c1 is granted the lock once it is hunted; c2 tries at the primary that the Sentinels name."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self._scene = scene
        self._group = group_in(scene)
        self._aimed_at = folder / "c1" / AIMS
        self.let_in_at = ""

    async def fight(self) -> None:
        await wait_until(lambda: any(self._aimed_at.iterdir()), "c1 is hunted", 20)
        assert await self._try("c1") == "r1"
        while not self.let_in_at:
            await asyncio.sleep(0.01)
            try:
                self.let_in_at = await self._try("c2")
            except FaultError:
                continue  # no primary is named, or none answers

    async def _try(self, client: str) -> str:
        primary = await self._group.primary()
        value = f"{client}:x"
        answer = await self._group.ask(primary, "SET", "lock:k1", value, "NX", "PX", "60000")
        if answer != "OK":
            return ""
        grant(self._scene.holders, client)
        return primary.name


def played(scene: Scene, folder: Path, play: Callable[[Clients], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(90):
            await start_all(scene)
            await play(Clients(scene, folder))

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("words", "cut_off", "promoted"),
    [
        ("by=hand", "r2 and r3", {"r2"}),
        ("by=sentinel", "r2 and r3", {"r2", "r3"}),
        ("cut=one", "r2", {"r2"}),
    ],
)
def test_the_new_primary_lets_a_second_holder_in_and_the_old_one_comes_back_as_a_replica(
    words: str, cut_off: str, promoted: set[str], scene: Scene, tmp_path: Path
) -> None:
    group, strike, nodes = group_in(scene), failover(scene, words), scene.nodes

    async def play(clients: Clients) -> None:
        async with asyncio.TaskGroup() as together:
            together.create_task(clients.fight())
            await strike.inject()
        proof = await strike.prove()
        assert proof.startswith(f"{cut_off} cut off: ")
        assert "r1 has k1 for c1, they have not; r1 is gone" in proof
        assert re.search(r"all Sentinels name (r\d) to c1, and its role", proof)
        assert clients.let_in_at in promoted
        assert not nodes["r1"].alive
        assert scene.struck == {"r2", "r3", "w1", "w2", "w3"}
        await strike.heal()
        await group.check_healthy()
        named = await group.primary()
        assert named.name == clients.let_in_at
        assert (await group.replication(nodes["r1"]))["role"] == "slave"
        assert {await group.owner_on(nodes[name], "k1") for name in ("r1", "r2", "r3")} == {"c2"}
        assert not scene.struck
        assert not any((tmp_path / "c1" / AIMS).iterdir())

    played(scene, tmp_path, play)


def test_a_lock_that_the_primary_does_not_have_proves_nothing_and_all_is_healed(
    scene: Scene, nodes: Nodes, tmp_path: Path
) -> None:
    strike = failover(scene, "by=hand")

    async def granted_elsewhere() -> None:
        await wait_until(lambda: any((tmp_path / "c1" / AIMS).iterdir()), "c1 is hunted", 20)
        grant(scene.holders, "c1")

    async def play(_clients: Clients) -> None:
        elsewhere = asyncio.create_task(granted_elsewhere())
        with pytest.raises(FaultError, match="r1 has k1 for None, not c1"):
            await strike.inject()
        await elsewhere
        await strike.heal()
        await group_in(scene).check_healthy()
        assert nodes["r1"].alive
        assert not scene.struck

    played(scene, tmp_path, play)


def test_sentinels_that_were_configured_half_way_are_configured_again(
    scene: Scene, nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strike, group = failover(scene, "by=hand"), group_in(scene)
    ask = RedisGroup._ask_sentinel

    async def refuse_to_monitor(self: RedisGroup, sentinel: Node, *words: str) -> Reply:
        if words[0] == "MONITOR" and sentinel.name == "w2":
            raise FaultError("w2 is deaf")
        return await ask(self, sentinel, *words)

    async def play(clients: Clients) -> None:
        fighting = asyncio.create_task(clients.fight())
        with monkeypatch.context() as deaf:
            deaf.setattr(RedisGroup, "_ask_sentinel", refuse_to_monitor)
            with pytest.raises(FaultError, match="w2 is deaf"):
                await strike.inject()
        await strike.heal()
        await group.check_healthy()
        assert (await group.primary()).name == "r2"
        await fighting
        assert nodes["r1"].alive

    played(scene, tmp_path, play)
