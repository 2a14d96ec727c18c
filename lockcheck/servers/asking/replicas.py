"""A Redis primary with its replicas and Sentinels: its state, and how a replica is promoted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lockcheck.errors import FaultError
from lockcheck.nodes.node import Node, Role
from lockcheck.servers.asking.redis import Reply, ask
from lockcheck.servers.redis import REDIS_PORT
from lockcheck.servers.redis_replicated import REDIS_REPLICATED
from lockcheck.servers.redis_sentinel import MONITORING, REDIS_SENTINEL, SENTINEL_PORT, WATCHED

LOCKS = "lock:"  # how the keys of locks begin


class RedisGroup:
    """`viewer` is asked for the node from whose network each command is sent."""

    def __init__(self, nodes: Iterable[Node], viewer: Callable[[], Node]) -> None:
        servers = [node for node in nodes if node.role is Role.SERVER]
        self.members = tuple(n for n in servers if n.spec.runs(REDIS_REPLICATED.name))
        self.sentinels = tuple(n for n in servers if n.spec.runs(REDIS_SENTINEL.name))
        self._viewer = viewer

    async def ask(self, member: Node, *words: str) -> Reply:
        return await ask(self._viewer(), member, REDIS_PORT, *words)

    async def _ask_sentinel(self, sentinel: Node, *words: str) -> Reply:
        return await ask(self._viewer(), sentinel, SENTINEL_PORT, "SENTINEL", *words)

    # --- its state ---------------------------------------------------------------------------

    async def replication(self, member: Node) -> dict[str, str]:
        """The fields of INFO replication."""
        info = str(await self.ask(member, "INFO", "replication"))
        return dict(line.split(":", 1) for line in info.splitlines() if ":" in line)

    async def locks_on(self, member: Node) -> set[str]:
        """The keys of the locks that have not expired: a replica lists no others."""
        keys = await self.ask(member, "KEYS", f"{LOCKS}*")
        return {str(key).removeprefix(LOCKS) for key in keys} if isinstance(keys, list) else set()

    async def owner_on(self, member: Node, key: str) -> str | None:
        """The holder of the lock there: its value begins with the holder's node."""
        value = await self.ask(member, "GET", f"{LOCKS}{key}")
        return None if value is None else str(value).partition(":")[0]

    async def primary(self) -> Node:
        """The member that all Sentinels name as the primary, and whose role is that."""
        named = {await self._primary_by(sentinel) for sentinel in self.sentinels}
        found = [member for member in self.members if named == {member.address}]
        if not found:
            raise FaultError(f"the Sentinels name {', '.join(sorted(map(str, named)))}")
        role = await self.ask(found[0], "ROLE")
        if not isinstance(role, list) or role[0] != "master":
            raise FaultError(f"the Sentinels name {found[0].name}, whose ROLE is {role}")
        return found[0]

    async def _primary_by(self, sentinel: Node) -> str:
        """The address of the member that it names, or what else it answers."""
        answer = await self._ask_sentinel(sentinel, "GET-MASTER-ADDR-BY-NAME", WATCHED)
        address = str(answer[0]) if isinstance(answer, list) else "no primary"
        by_name = {member.name: member.address for member in self.members}
        return by_name.get(address, address)

    async def check_healthy(self) -> None:
        """Raises FaultError unless the Sentinels agree, and the others follow one primary."""
        primary = await self.primary()
        offset = int((await self.replication(primary))["master_repl_offset"])
        for member in self.members:
            if member is not primary:
                await self._check_follows(member, primary, offset)
        for sentinel in self.sentinels:
            await self._check_knows_all(sentinel)

    async def _check_follows(self, member: Node, primary: Node, offset: int) -> None:
        info = await self.replication(member)
        follows = info.get("master_host") in (primary.name, primary.address)
        if not follows or info.get("master_link_status") != "up":
            raise FaultError(f"{member.name} does not follow {primary.name}")
        if int(info["slave_repl_offset"]) < offset:
            raise FaultError(f"{member.name} has not caught up with {primary.name}")

    async def _check_knows_all(self, sentinel: Node) -> None:
        answer = await self._ask_sentinel(sentinel, "MASTER", WATCHED)
        words = list(map(str, answer)) if isinstance(answer, list) else []
        knows = dict(zip(words[::2], words[1::2], strict=True))
        wanted = {
            "flags": "master",
            "num-slaves": str(len(self.members) - 1),
            "num-other-sentinels": str(len(self.sentinels) - 1),
        }
        if missed := [name for name, value in wanted.items() if knows.get(name) != value]:
            seen = ", ".join(f"{name} {knows.get(name)}" for name in missed)
            raise FaultError(f"{sentinel.name} does not know the whole group yet: {seen}")

    # --- changing its primary ----------------------------------------------------------------

    async def promote(self, chosen: Node) -> None:
        """A manual failover. All Sentinels first forget the old primary, or one would learn of it
        from another."""
        await self._replicaof(chosen, "NO", "ONE")
        for member in self.members:
            if member is not chosen and member.alive:
                await self.follow(member, chosen)
        for sentinel in self.sentinels:
            if await self._ask_sentinel(sentinel, "GET-MASTER-ADDR-BY-NAME", WATCHED) is not None:
                await self._ask_sentinel(sentinel, "REMOVE", WATCHED)
        for sentinel in self.sentinels:
            await self._monitor(sentinel, chosen)

    async def _monitor(self, sentinel: Node, primary: Node) -> None:
        quorum = str(len(self.sentinels) // 2 + 1)
        address, port = primary.address, str(REDIS_PORT)
        await self._ask_sentinel(sentinel, "MONITOR", WATCHED, address, port, quorum)
        for name, value in MONITORING.items():
            await self._ask_sentinel(sentinel, "SET", WATCHED, name, value)

    async def follow(self, member: Node, primary: Node) -> None:
        """Makes the member a replica of the primary."""
        await self._replicaof(member, primary.address, str(REDIS_PORT))

    async def _replicaof(self, member: Node, *of: str) -> None:
        """Also rewrites its configuration file, or a restart would undo it."""
        await self.ask(member, "REPLICAOF", *of)
        await self.ask(member, "CONFIG", "REWRITE")
