"""The agent's orders for each node of a plan: how its program is started in this runtime."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

import msgspec

from lockcheck.agent.orders import NodeOrders
from lockcheck.errors import ClusterError
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers import Server
from lockcheck.servers.base import Command, Here
from lockcheck.servers.faketime import FILE, file_text, under_faketime
from lockcheck.servers.versions import program_of, server_of

CLIENT = "client"  # the only program that is not a server: lockcheck itself
CLIENT_ON_HOST = (sys.executable, "-P", "-m", "lockcheck.client.worker")
CLIENT_IN_IMAGE = ("python3", "-m", "lockcheck.client.worker")


def image_of(spec: NodeSpec) -> str:
    return CLIENT if spec.server == CLIENT else server_of(spec.kind).image_name


def programs_on_host(kinds: Iterable[str]) -> dict[str, Command]:
    found = {}
    for kind in set(kinds):
        program = CLIENT_ON_HOST if kind == CLIENT else program_of(server_of(kind))
        if program is None:
            raise ClusterError(f"{kind} is not installed here", cure=server_of(kind).cure)
        found[kind] = program
    return found


def programs_in_images(kinds: Iterable[str]) -> dict[str, Command]:
    return {
        kind: CLIENT_IN_IMAGE if kind == CLIENT else server_of(kind).image_program
        for kind in set(kinds)
    }


def node_orders(
    specs: Sequence[NodeSpec],
    programs: dict[str, Command],
    folder_of: Callable[[str], str],
    data_of: Callable[[str], str],
    *,
    idle_clients: bool = False,
    faketime: str = "",
) -> list[NodeOrders]:
    """`folder_of` and `data_of`: where a node sees its own files; `faketime`: the path of the
    library that some servers run under."""
    orders = []
    servers = _by_kind(specs)
    for spec in specs:
        program = programs[spec.kind]
        if spec.server == CLIENT:
            command = () if idle_clients else (*program, folder_of(spec.name))
            orders.append(
                NodeOrders(name=spec.name, role=spec.role, server=CLIENT, command=command)
            )
            continue
        members = tuple(
            other.name for other in specs if (other.server, other.role) == (spec.server, spec.role)
        )
        here = Here(spec.name, members, data_of(spec.name), program, servers)
        ordered = _server_orders(spec, server_of(spec.kind), here)
        orders.append(_faked(ordered, faketime) if spec.faketime else ordered)
    return orders


def _faked(orders: NodeOrders, library: str) -> NodeOrders:
    command = under_faketime(orders.command, library, orders.data)
    files = {**orders.files, FILE: file_text(0)}
    return msgspec.structs.replace(orders, command=command, files=files)


def _by_kind(specs: Iterable[NodeSpec]) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    for spec in specs:
        if spec.role is Role.SERVER:
            names[spec.server] = (*names.get(spec.server, ()), spec.name)
    return names


def _server_orders(spec: NodeSpec, server: Server, here: Here) -> NodeOrders:
    return NodeOrders(
        name=spec.name,
        role=spec.role,
        server=server.name,
        of_version=server.chosen,
        command=server.command(here),
        environment=dict(server.environment(here)),
        data=here.data if server.data_mb else "",
        data_mb=server.data_mb,
        files=dict(server.files(here)),
        as_ordinary_user=server.refuses_root,
        start_after_ms=server.gap_ms * here.members.index(here.name),
        port=server.port,
        ready=server.ready,
        leader=server.leader,
        version=server.version(here.program),
        version_pattern=server.version_pattern,
    )
