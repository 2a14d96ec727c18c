"""A Redis primary dies right after it has granted a lock, and before its replica has it.

The replicas are cut off from the primary. Once they have no trace of the lock, and a client has
been granted it, the primary is killed and a replica is promoted: by hand, or by the Sentinels. The
new primary has never heard of that lock. The client that holds it is kept from releasing it until
somebody else is let in, or until well before its lease ends.

`cut=one` leaves the other replica connected, so WAIT 1 finds one that has the lock. By hand, the
one without it is promoted all the same; Sentinels choose the one that has most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from lockcheck.errors import FaultError
from lockcheck.history import Effect
from lockcheck.nemesis.base import Aim, FaultKind, Plan, Refusal, Step
from lockcheck.nemesis.course.kept import Kept, a_held_lock
from lockcheck.nemesis.faults.partition import Partition
from lockcheck.nemesis.network.links import Link
from lockcheck.nemesis.parameters import choice
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Node, Role
from lockcheck.servers.redis_replicas import RedisGroup
from lockcheck.servers.redis_replicated import REDIS_REPLICATED

T = TypeVar("T")

BY = choice("by", "who promotes a replica", ("hand", "sentinel"), default="hand")
CUT = choice(
    "cut", "which replicas are cut off from the primary first", ("all", "one"), default="all"
)
PROMOTED_S = 20.0
WHOLE_S = 30.0
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
        self._taken: set[str] = set()  # from other faults, while this one goes on
        self._seen: list[str] = []

    # --- phase by phase ----------------------------------------------------------------------

    async def inject(self) -> int:
        self._take_the_others()
        await _until(
            self._group.check_healthy, "the group is not healthy before the fault", PROMOTED_S
        )
        before_ns = await self._partition.inject()
        self._seen.append(f"{_names(self._cut)} cut off: {await self._partition.prove()}")
        await _until(
            self._nothing_is_left, f"the lock has not expired on {_names(self._cut)}", PROMOTED_S
        )
        async with a_held_lock(self._scene) as kept:
            await self._look_who_has_it(kept)
            await self._scene.fleet.end(self._primary.name)
            if self._by_hand:
                await self._group.promote(self._cut[0])
            await _until(self._is_promoted, "no other server is the primary", PROMOTED_S)
            if kept is not None:
                await kept.until_another_is_in()
        return before_ns

    def _take_the_others(self) -> None:
        others = {node.name for node in (*self._replicas, *self._group.sentinels)}
        if struck := others & self._scene.struck:
            raise FaultError(f"another fault has struck {', '.join(sorted(struck))}")
        self._scene.struck |= others
        self._taken = others

    async def _nothing_is_left(self) -> None:
        for replica in self._cut:
            if locks := await self._group.locks_on(replica):
                raise FaultError(f"{replica.name} still has {', '.join(sorted(locks))}")

    async def _look_who_has_it(self, kept: Kept | None) -> None:
        """The primary has the lock, and the replicas that are cut off do not."""
        if kept is None:
            self._seen.append("nobody was granted the lock any more")
            return
        for key in sorted(kept.keys):
            owner = await self._group.owner_on(self._primary, key)
            if owner != kept.node:
                raise FaultError(f"{self._primary.name} has {key} for {owner}, not {kept.node}")
        await self._nothing_is_left()
        keys = ", ".join(sorted(kept.keys))
        self._seen.append(f"{self._primary.name} has {keys} for {kept.node}, they have not")

    async def _is_promoted(self) -> None:
        named = await self._group.primary()
        if named is self._primary or (self._by_hand and named is not self._cut[0]):
            raise FaultError(f"the Sentinels still name {named.name}")

    async def prove(self) -> str:
        if pids := self._primary.pids():
            raise FaultError(f"{self._primary.name} is still alive: {pids}")
        # On a busy machine, one slow answer of a Sentinel does not mean that the failover failed.
        named = await _until(self._group.primary, "the Sentinels disagree", PROMOTED_S)
        viewer = self._scene.a_client().name
        found = f"all Sentinels name {named.name} to {viewer}, and it says that it is the primary"
        return "; ".join((*self._seen, f"{self._primary.name} is gone", found))

    # --- and back ----------------------------------------------------------------------------

    async def heal(self) -> None:
        """The old primary comes back, and follows the new one."""
        await self._partition.heal()
        if not self._taken:
            return  # nothing was begun
        fleet = self._scene.fleet
        if self._primary.down:
            if self._primary.alive:  # an earlier attempt got so far
                await fleet.end(self._primary.name)
            await fleet.start(self._primary.name)
        await _until(self._lead_back, "the others do not follow one primary", WHOLE_S)
        self._scene.struck -= self._taken
        self._taken = set()

    async def _lead_back(self) -> None:
        """Sentinels make a replica of a server that comes back, unless they were made to forget it.
        Where they were interrupted half-way, they are told again."""
        if self._by_hand:
            leading = [member for member in self._group.members if await self._leads(member)]
            try:
                named = await self._group.primary()
            except FaultError:
                named = self._cut[0] if self._cut[0] in leading else self._primary
                await self._group.promote(named)
            for member in leading:
                if member is not named:
                    await self._group.follow(member, named)
        await self._group.check_healthy()

    async def _leads(self, member: Node) -> bool:
        return (await self._group.replication(member)).get("role") == "master"


async def _until(look: Callable[[], Awaitable[T]], lacking: str, timeout_s: float) -> T:
    """Repeats it until it raises no FaultError any more; in the end the last one is reported."""
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
    """While none of the servers is struck: all of them have a part in it."""
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
    if REDIS_REPLICATED.name not in plan.kinds:
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
