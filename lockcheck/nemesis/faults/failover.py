"""Kills a Redis primary after it has granted a lock and before its replicas have it.

The replicas are cut off from the primary (with `cut=one` one of them, so WAIT 1 succeeds). Once the
lock has expired on them and a client has been granted it, the primary is killed and a replica is
promoted: by hand one that was cut off, or by the Sentinels the one that is furthest ahead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from lockcheck.errors import FaultError
from lockcheck.history import Effect
from lockcheck.nemesis.base import Aim, FaultKind, Plan, Refusal, Step
from lockcheck.nemesis.course.held_lock import HeldLock, a_held_lock
from lockcheck.nemesis.faults.partition import Partition
from lockcheck.nemesis.network.links import Link
from lockcheck.nemesis.parameters import choice
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Node, Role
from lockcheck.servers.asking.replicas import RedisGroup
from lockcheck.servers.redis_replicated import REDIS_REPLICATED

T = TypeVar("T")

BY = choice("by", "who promotes a replica", ("hand", "sentinel"), default="hand")
CUT = choice(
    "cut", "which replicas are cut off from the primary first", ("all", "one"), default="all"
)
PROMOTED_S = 20.0
HEALTHY_S = 30.0
POLL_S = 0.01
# The lock has to expire on the replicas before anything happens.
LONGEST_TTL_MS = 5000


class Failover:
    def __init__(self, primary: Node, scene: Scene, *, by_hand: bool, cut_all: bool) -> None:
        self._primary = primary
        self._scene = scene
        self._group = RedisGroup(scene.nodes.values(), scene.a_client)
        self._replicas = [member for member in self._group.members if member is not primary]
        self._cut = self._replicas if cut_all else self._replicas[:1]
        names = [(primary.name, one.name) for one in self._cut]
        links = {Link(*pair) for a, b in names for pair in ((a, b), (b, a))}
        self._partition = Partition((primary.name,), links, scene)
        self._by_hand = by_hand
        self._reserved: set[str] = set()  # nodes that no other fault may strike meanwhile
        self._seen: list[str] = []

    async def inject(self) -> int:
        self._reserve_the_others()
        await _until(
            self._group.check_healthy, "the group is not healthy before the fault", PROMOTED_S
        )
        before_ns = await self._partition.inject()
        self._seen.append(f"{_names(self._cut)} cut off: {await self._partition.prove()}")
        await _until(
            self._check_expired, f"the lock has not expired on {_names(self._cut)}", PROMOTED_S
        )
        async with a_held_lock(self._scene) as held:
            await self._check_held(held)
            await self._scene.fleet.end(self._primary.name)
            if self._by_hand:
                await self._group.promote(self._cut[0])
            await _until(self._check_promoted, "no other server is the primary", PROMOTED_S)
            if held is not None:
                await held.until_granted_to_another()
        return before_ns

    def _reserve_the_others(self) -> None:
        others = {node.name for node in (*self._replicas, *self._group.sentinels)}
        if struck := others & self._scene.struck:
            raise FaultError(f"another fault has struck {', '.join(sorted(struck))}")
        self._scene.struck |= others
        self._reserved = others

    async def _check_expired(self) -> None:
        """Raises FaultError while a replica that is cut off still has a lock."""
        for replica in self._cut:
            if locks := await self._group.locks_on(replica):
                raise FaultError(f"{replica.name} still has {', '.join(sorted(locks))}")

    async def _check_held(self, held: HeldLock | None) -> None:
        """Raises FaultError unless the primary has the lock and the replicas cut off do not."""
        if held is None:
            self._seen.append("no client was granted the lock any more")
            return
        for key in sorted(held.keys):
            owner = await self._group.owner_on(self._primary, key)
            if owner != held.node:
                raise FaultError(f"{self._primary.name} has {key} for {owner}, not {held.node}")
        await self._check_expired()
        keys = ", ".join(sorted(held.keys))
        self._seen.append(f"{self._primary.name} has {keys} for {held.node}, they have not")

    async def _check_promoted(self) -> None:
        """Raises FaultError until a replica is the primary: by hand, the one that was chosen."""
        named = await self._group.primary()
        if named is self._primary or (self._by_hand and named is not self._cut[0]):
            raise FaultError(f"the Sentinels still name {named.name}")

    async def prove(self) -> str:
        if pids := self._primary.pids():
            raise FaultError(f"{self._primary.name} is still alive: {pids}")
        # Repeated: on a busy machine, one late answer of a Sentinel proves nothing.
        named = await _until(self._group.primary, "the Sentinels disagree", PROMOTED_S)
        viewer = self._scene.a_client().name
        found = f"all Sentinels name {named.name} to {viewer}, and its role is primary"
        return "; ".join((*self._seen, f"{self._primary.name} is gone", found))

    async def heal(self) -> None:
        """Restarts the old primary, which then follows the new one."""
        await self._partition.heal()
        if not self._reserved:
            return  # it was never injected
        fleet = self._scene.fleet
        if self._primary.down:
            if self._primary.alive:  # started by an earlier attempt
                await fleet.end(self._primary.name)
            await fleet.start(self._primary.name)
        await _until(self._reunite, "the others do not follow one primary", HEALTHY_S)
        self._scene.struck -= self._reserved
        self._reserved = set()

    async def _reunite(self) -> None:
        """Sentinels turn a primary that comes back into a replica, unless a manual failover made
        them forget it. If that failover stopped half-way, it is repeated."""
        if self._by_hand:
            primaries = [member for member in self._group.members if await self._is_primary(member)]
            try:
                named = await self._group.primary()
            except FaultError:
                named = self._cut[0] if self._cut[0] in primaries else self._primary
                await self._group.promote(named)
            for member in primaries:
                if member is not named:
                    await self._group.follow(member, named)
        await self._group.check_healthy()

    async def _is_primary(self, member: Node) -> bool:
        return (await self._group.replication(member)).get("role") == "master"


async def _until(look: Callable[[], Awaitable[T]], lacking: str, timeout_s: float) -> T:
    """Repeats `look` until it raises no FaultError; raises the last one when the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while True:
        try:
            return await look()
        except FaultError as error:
            if loop.time() > deadline:
                why = f"timed out after {timeout_s:g} s: {lacking}; {error.message}"
                raise FaultError(why) from error
        await asyncio.sleep(POLL_S)


def _names(nodes: list[Node]) -> str:
    return " and ".join(node.name for node in nodes)


# --- what it strikes, and when not ---------------------------------------------------------------


async def _primary(scene: Scene, _choices: Random) -> tuple[str, ...]:
    """The primary, while no other fault strikes any of the servers: all of them are needed."""
    servers = scene.names(Role.SERVER)
    if scene.free(Role.SERVER) != servers:
        return ()
    name = await scene.fleet.leader()
    return (name,) if name is not None and scene.free(Role.SERVER) == servers else ()


def _strike(step: Step, nodes: tuple[str, ...], scene: Scene) -> Failover:
    return Failover(
        scene.nodes[nodes[0]],
        scene,
        by_hand=step.setting(BY.name) == "hand",
        cut_all=step.setting(CUT.name) == "all",
    )


def _why_not(_step: Step, plan: Plan) -> Refusal | None:
    if not any(kind.name == REDIS_REPLICATED.name for kind in plan.kinds):
        return Refusal(
            f"{plan.backend} has no primary with replicas to promote",
            "--backend redis-failover or redis-wait; or kill:leader, where members elect one",
        )
    if plan.ttl_ms > LONGEST_TTL_MS:
        return Refusal(
            "the replicas' copy of the lock has to expire before the failover",
            "--ttl 5s, or shorter",
        )
    return None


KIND = FaultKind(
    name="failover",
    summary="the primary dies before its replicas have the lock, and one of them is promoted",
    effect=Effect.ENDS,
    aims=(Aim("primary", "the primary that replicas follow", _primary),),
    strike=_strike,
    parameters=(BY, CUT),
    why_not=_why_not,
    needs="a Redis with replicas and Sentinels",
)
