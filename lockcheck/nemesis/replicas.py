"""A Redis primary, its replicas and their Sentinels: how the group is, and how it is led."""

from __future__ import annotations

from lockcheck.errors import FaultError
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Node, Role
from lockcheck.servers.redis import REDIS_PORT
from lockcheck.servers.redis_asking import Reply, ask
from lockcheck.servers.redis_replicated import REDIS_REPLICATED
from lockcheck.servers.redis_sentinel import (
    DOWN_AFTER_MS,
    FAILOVER_TIMEOUT_MS,
    REDIS_SENTINEL,
    SENTINEL_PORT,
    WATCHED,
)

LOCKS = "lock:"  # how the keys of locks begin


class Group:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.members = self._of_kind(REDIS_REPLICATED.name)
        self.sentinels = self._of_kind(REDIS_SENTINEL.name)

    def _of_kind(self, kind: str) -> tuple[Node, ...]:
        nodes = self._scene.nodes.values()
        return tuple(n for n in nodes if n.role is Role.SERVER and n.spec.server == kind)

    @property
    def viewer(self) -> Node:
        """Seen from a client, as the clients see it."""
        clients = self._scene.free(Role.CLIENT) or self._scene.names(Role.CLIENT)
        return self._scene.nodes[clients[0]]

    async def ask(self, member: Node, *words: str) -> Reply:
        return await ask(self.viewer, member, REDIS_PORT, *words)

    # --- how it is ---------------------------------------------------------------------------

    async def replication(self, member: Node) -> dict[str, str]:
        said = str(await self.ask(member, "INFO", "replication"))
        return dict(line.split(":", 1) for line in said.splitlines() if ":" in line)

    async def locks_on(self, member: Node) -> set[str]:
        """Those that have not expired: a replica names no others."""
        said = await self.ask(member, "KEYS", f"{LOCKS}*")
        return {str(key).removeprefix(LOCKS) for key in said} if isinstance(said, list) else set()

    async def owner_on(self, member: Node, key: str) -> str | None:
        """The holder of the lock there: its value begins with the holder's node."""
        said = await self.ask(member, "GET", f"{LOCKS}{key}")
        return None if said is None else str(said).partition(":")[0]

    async def named(self) -> Node:
        """The member that all Sentinels name as the primary, and that says so, too."""
        named = {await self._named_by(sentinel) for sentinel in self.sentinels}
        found = [member for member in self.members if named == {member.address}]
        if not found:
            raise FaultError(f"the Sentinels name {', '.join(sorted(map(str, named)))}")
        said = await self.ask(found[0], "ROLE")
        if not isinstance(said, list) or said[0] != "master":
            raise FaultError(f"the Sentinels name {found[0].name}, which says: {said}")
        return found[0]

    async def _named_by(self, sentinel: Node) -> str:
        said = await self._tell(sentinel, "GET-MASTER-ADDR-BY-NAME", WATCHED)
        address = str(said[0]) if isinstance(said, list) else "nobody"
        by_name = {member.name: member.address for member in self.members}
        return by_name.get(address, address)

    async def check_whole(self) -> None:
        """One primary, which all others follow and have caught up with, and Sentinels that agree
        and know them all."""
        primary = await self.named()
        offset = int((await self.replication(primary))["master_repl_offset"])
        for member in self.members:
            if member is not primary:
                await self._check_follows(member, primary, offset)
        for sentinel in self.sentinels:
            await self._check_knows_all(sentinel)

    async def _check_follows(self, member: Node, primary: Node, offset: int) -> None:
        said = await self.replication(member)
        follows = said.get("master_host") in (primary.name, primary.address)
        if not follows or said.get("master_link_status") != "up":
            raise FaultError(f"{member.name} does not follow {primary.name}")
        if int(said["slave_repl_offset"]) < offset:
            raise FaultError(f"{member.name} has not caught up with {primary.name}")

    async def _check_knows_all(self, sentinel: Node) -> None:
        said = await self._tell(sentinel, "MASTER", WATCHED)
        words = list(map(str, said)) if isinstance(said, list) else []
        knows = dict(zip(words[::2], words[1::2], strict=True))
        wanted = {
            "flags": "master",
            "num-slaves": str(len(self.members) - 1),
            "num-other-sentinels": str(len(self.sentinels) - 1),
        }
        if missed := [name for name, value in wanted.items() if knows.get(name) != value]:
            seen = ", ".join(f"{name} {knows.get(name)}" for name in missed)
            raise FaultError(f"{sentinel.name} is not done yet: {seen}")

    # --- how it is led -----------------------------------------------------------------------

    async def promote(self, chosen: Node) -> None:
        """As people do it by hand: one is made the primary, the others that run are made to follow
        it, and the Sentinels are told, after all of them have been made to forget: otherwise one
        would hear from another how it was before."""
        await self._make(chosen, "NO", "ONE")
        for member in self.members:
            if member is not chosen and member.alive:
                await self.follow(member, chosen)
        for sentinel in self.sentinels:
            if await self._tell(sentinel, "GET-MASTER-ADDR-BY-NAME", WATCHED) is not None:
                await self._tell(sentinel, "REMOVE", WATCHED)
        quorum = str(len(self.sentinels) // 2 + 1)
        for sentinel in self.sentinels:
            await self._tell(sentinel, "MONITOR", WATCHED, chosen.address, str(REDIS_PORT), quorum)
            for name, value in _SETTINGS:
                await self._tell(sentinel, "SET", WATCHED, name, value)

    async def follow(self, member: Node, primary: Node) -> None:
        await self._make(member, primary.address, str(REDIS_PORT))

    async def _make(self, member: Node, *of: str) -> None:
        """Also in its file, or a restart would undo it."""
        await self.ask(member, "REPLICAOF", *of)
        await self.ask(member, "CONFIG", "REWRITE")

    async def _tell(self, sentinel: Node, *words: str) -> Reply:
        return await ask(self.viewer, sentinel, SENTINEL_PORT, "SENTINEL", *words)


_SETTINGS = (
    ("down-after-milliseconds", str(DOWN_AFTER_MS)),
    ("failover-timeout", str(FAILOVER_TIMEOUT_MS)),
    ("parallel-syncs", "2"),
)
