"""Which links a step cuts, as pure functions of the step and the struck nodes.

Most cuts have two sides: the struck nodes, and the others. A bridge leaves one server connected to
both; in a ring each server keeps the links to its neighbours.
"""

from __future__ import annotations

from itertools import combinations, product

from lockcheck.nemesis.aims import (
    BRIDGE,
    CLIENT,
    HOLDER,
    LEADER,
    MAJORITIES_RING,
    MAJORITY,
    MINORITY,
    NODE,
    SERVER,
)
from lockcheck.nemesis.base import Plan, Refusal, Step
from lockcheck.nemesis.network.links import Link
from lockcheck.nemesis.parameters import choice
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Role

Nodes = tuple[str, ...]
Pairs = set[tuple[str, str]]

# What the struck nodes are cut off from.
SIDES = {
    "lock": (Role.SERVER, Role.CLIENT),
    "servers": (Role.SERVER,),
    "clients": (Role.CLIENT,),
    "storage": (Role.STORAGE,),
    "all": tuple(Role),
}
FROM = choice("from", "what they are cut off from", tuple(SIDES), default="lock")
ONE_WAY = choice("one-way", "only what they are sent (in), or send (out), is lost", ("in", "out"))
BETWEEN_SERVERS = (SERVER, LEADER, MINORITY, MAJORITY, MAJORITIES_RING)  # from=servers
SHAPES = (MAJORITIES_RING, BRIDGE)  # defined by the links they leave as much as by those they cut


def links_to_cut(step: Step, nodes: Nodes, scene: Scene) -> tuple[Link, ...]:
    pairs = _apart(step, nodes, scene)
    out, into = {Link(*pair) for pair in pairs}, {Link(*reversed(pair)) for pair in pairs}
    one_way = step.setting(ONE_WAY.name)
    return tuple(sorted(out if one_way == "out" else into if one_way == "in" else out | into))


def links_to_leave(step: Step, nodes: Nodes, scene: Scene) -> tuple[Link, ...]:
    """The links that must go on working: without them it would be another shape."""
    if step.aim not in SHAPES:
        return ()
    lock = scene.names(*SIDES["lock"])
    pairs = (pair for pair in product(lock, lock) if len({*pair}) == 2)
    between = {Link(*pair) for pair in pairs if not _strangers(*pair, scene)}
    return tuple(sorted(between - {*links_to_cut(step, nodes, scene)}))


def _apart(step: Step, nodes: Nodes, scene: Scene) -> Pairs:
    """Pairs of a struck node and a node that it is cut off from, each once."""
    others = scene.names(*SIDES[str(step.setting(FROM.name))])
    if step.aim is MAJORITIES_RING:
        return _ring(nodes, others, scene)
    spared = {*nodes, *(_middle(nodes, scene) if step.aim is BRIDGE else ())}
    return {
        (own, other)
        for own, other in product(nodes, others)
        if other not in spared and not _strangers(own, other, scene)
    }


def _strangers(own: str, other: str, scene: Scene) -> bool:
    """Whether both are clients, which do not talk to each other."""
    return scene.nodes[own].role is scene.nodes[other].role is Role.CLIENT


def _middle(side: Nodes, scene: Scene) -> Nodes:
    """The server that sees both sides: the first that is not on this side."""
    return tuple(name for name in scene.names(Role.SERVER) if name not in side)[:1]


def _ring(servers: Nodes, others: list[str], scene: Scene) -> Pairs:
    """The pairs to cut for a ring; each client sees the same servers as one of them does."""
    apart = set[tuple[str, str]]()
    if set(others) & set(servers):
        apart |= {pair for pair in combinations(servers, 2) if not sees(servers, *pair)}
    clients = [name for name in scene.names(Role.CLIENT) if name in others]
    for number, client in enumerate(clients):
        beside = servers[number % len(servers)]
        apart |= {(server, client) for server in servers if not sees(servers, beside, server)}
    return apart


def sees(ring: Nodes, one: str, other: str) -> bool:
    """Whether a server of the ring keeps its link to another: each sees as many neighbours on both
    sides as make a majority with it. A ring of three is open, or all would be neighbours."""
    apart = abs(ring.index(one) - ring.index(other))
    if len(ring) == 3:
        return apart < 2
    needed = len(ring) // 2  # beside itself
    return min(apart, len(ring) - apart) <= -(-needed // 2)


def why_not(step: Step, plan: Plan) -> Refusal | None:
    side, aim = step.setting(FROM.name), step.aim
    if side == "storage" and not plan.stores:
        return Refusal(
            "this run has no separate storage to be cut off from",
            "leave out from=storage",
        )
    if aim is MAJORITIES_RING and (side in ("storage", "all") or step.setting(ONE_WAY.name)):
        return Refusal(
            "a ring has no sides, and no place for the storage",
            "from=lock, from=servers or from=clients, and both ways",
        )
    if aim is NODE and side not in ("lock", "all"):
        return Refusal(
            "the node may have no other node there to be cut off from",
            f"leave out from={side}, or aim at client or server",
        )
    if side == "clients" and aim in (HOLDER, CLIENT):
        return Refusal("clients do not talk to each other", "leave out from=clients")
    if side == "servers" and aim in BETWEEN_SERVERS and (plan.servers < 2 or plan.independent):
        one, more = "has one server only", "has servers that do not talk to each other"
        return Refusal(
            f"{plan.backend} {one if plan.servers < 2 else more}", "leave out from=servers"
        )
    return None
