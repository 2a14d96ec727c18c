"""What a fault can be aimed at. Each kind of fault lists the aims that make sense for it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from lockcheck.nemesis.base import Aim, Plan, Refusal, Step
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Role

Nodes = tuple[str, ...]


def _one(names: list[str], choices: Random) -> Nodes:
    return (choices.choice(names),) if names else ()


def _some(names: list[str], number: int, choices: Random) -> Nodes:
    """Exactly `number` of them, or none."""
    return tuple(sorted(choices.sample(names, number))) if 0 < number <= len(names) else ()


async def _hunted(_scene: Scene, _choices: Random) -> Nodes:
    raise AssertionError("holders are hunted, not chosen")


async def _client(scene: Scene, choices: Random) -> Nodes:
    return _one(scene.free(Role.CLIENT), choices)


async def _server(scene: Scene, choices: Random) -> Nodes:
    return _one(scene.free(Role.SERVER), choices)


async def _random(scene: Scene, choices: Random) -> Nodes:
    return _one(scene.free(Role.SERVER, Role.CLIENT), choices)


async def _node(scene: Scene, choices: Random) -> Nodes:
    return _one(scene.free(*Role), choices)


async def _leader(scene: Scene, _choices: Random) -> Nodes:
    name = await scene.fleet.leader()
    return (name,) if name is not None and scene.is_free(name) else ()


async def _follower(scene: Scene, choices: Random) -> Nodes:
    leader = await scene.fleet.leader()
    others = [name for name in scene.free(Role.SERVER) if name != leader]
    return _one(others, choices) if leader is not None else ()


async def _minority(scene: Scene, choices: Random) -> Nodes:
    number = (len(scene.names(Role.SERVER)) - 1) // 2
    return _some(scene.free(Role.SERVER), number, choices)


async def _majority(scene: Scene, choices: Random) -> Nodes:
    number = len(scene.names(Role.SERVER)) // 2 + 1
    return _some(scene.free(Role.SERVER), number, choices)


async def _all(scene: Scene, choices: Random) -> Nodes:
    return _some(scene.free(Role.SERVER), len(scene.names(Role.SERVER)), choices)


async def _half(scene: Scene, choices: Random) -> Nodes:
    """The smaller half of the servers, and half of the clients with it."""
    return _side(scene, len(scene.names(Role.SERVER)) // 2, choices)


async def _side_of_a_bridge(scene: Scene, choices: Random) -> Nodes:
    """The smaller half of all servers but one, and half of the clients with it."""
    return _side(scene, (len(scene.names(Role.SERVER)) - 1) // 2, choices)


def _side(scene: Scene, servers: int, choices: Random) -> Nodes:
    side: Nodes = ()
    clients = len(scene.names(Role.CLIENT)) // 2
    for role, number in ((Role.SERVER, servers), (Role.CLIENT, clients)):
        some = _some(scene.free(role), number, choices)
        if len(some) < number:
            return ()
        side += some
    return side


async def _ring(scene: Scene, choices: Random) -> Nodes:
    """All servers, in the order in which they are neighbours."""
    servers = scene.names(Role.SERVER)
    choices.shuffle(servers)
    return tuple(servers) if all(map(scene.is_free, servers)) else ()


def at_nodes(step: Step, names: Nodes, *, at_clients: bool = False) -> Step:
    """The same fault, at nodes that are named instead of chosen."""

    async def these(_scene: Scene, _choices: Random) -> Nodes:
        return names

    aim = Aim("+".join(names), "the nodes that were named", these, at_clients=at_clients)
    return replace(step, aim=aim)


def _without_servers(plan: Plan) -> Refusal | None:
    if not plan.servers:
        return Refusal(f"{plan.backend} has no servers", "aim at client")
    return None


def _without_leader(plan: Plan) -> Refusal | None:
    if not plan.leads:
        return Refusal(f"{plan.backend} has no leader", "aim at server")
    return None


def _without_follower(plan: Plan) -> Refusal | None:
    if plan.servers < 2:
        return Refusal(f"{plan.backend} has no server that follows another", "aim at server")
    return _without_leader(plan)


def _without_three(plan: Plan, instead: str) -> Refusal | None:
    if plan.servers >= 3:
        return None
    return Refusal(
        f"{plan.backend} has {plan.servers} of the 3 servers that it takes", f"aim at {instead}"
    )


def _too_few_for_halves(plan: Plan) -> Refusal | None:
    if plan.servers < 2 and plan.clients < 2:
        return Refusal("one server and one client cannot be halved", "aim at client")
    return None


HOLDER = Aim("holder", "a client that holds the lock", _hunted, at_holders=True, at_clients=True)
CLIENT = Aim("client", "any client", _client, at_clients=True)
SERVER = Aim("server", "one of the lock's servers", _server, _without_servers)
LEADER = Aim("leader", "the server that leads the others", _leader, _without_leader, also="primary")
NODE = Aim("node", "any single node: a server, a client or the storage", _node)
FOLLOWER = Aim("follower", "a server that does not lead", _follower, _without_follower)
RANDOM = Aim("random", "a server or a client", _random)
MINORITY = Aim(
    "minority",
    "fewer than half of the servers",
    _minority,
    lambda plan: _without_three(plan, "server"),
)
MAJORITY = Aim("majority", "more than half of the servers", _majority, _without_servers)
ALL = Aim("all", "all of the servers", _all, _without_servers)
HALVES = Aim("halves", "half of the servers and of the clients", _half, _too_few_for_halves)
MAJORITIES_RING = Aim(
    "majorities-ring",
    "every server sees a majority, and no two see the same one",
    _ring,
    lambda plan: _without_three(plan, "client"),
)
BRIDGE = Aim(
    "bridge",
    "two halves, and one server that sees both",
    _side_of_a_bridge,
    lambda plan: _without_three(plan, "client"),
)
