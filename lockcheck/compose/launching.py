"""The agent's orders for each node of a plan: how its program is started in this runtime."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from lockcheck.agent.orders import NodeOrders
from lockcheck.errors import ClusterError
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers import Server
from lockcheck.servers.base import Command, Here
from lockcheck.servers.faketime import FILE, file_text, under_faketime
from lockcheck.servers.kind import Kind
from lockcheck.servers.versions import program_of

CLIENT_IMAGE = "client"  # changes with every change of lockcheck
CLIENT_ON_HOST = (sys.executable, "-P", "-m", "lockcheck.client.worker")
CLIENT_IN_IMAGE = ("python3", "-m", "lockcheck.client.worker")


def image_of(spec: NodeSpec) -> str:
    return spec.server.image_name if spec.server and not spec.elsewhere else CLIENT_IMAGE


def programs_on_host(kinds: Iterable[Kind]) -> dict[Kind, Command]:
    found = {}
    for kind in kinds:
        program = program_of(kind.server)
        if program is None:
            raise ClusterError(f"{kind} is not installed here", cure=kind.server.cure)
        found[kind] = program
    return found


def node_orders(
    specs: Sequence[NodeSpec],
    programs: Mapping[Kind, Command],
    folder_of: Callable[[str], str],
    data_of: Callable[[str], str],
    *,
    client: Command = (),
    faketime: str = "",
) -> list[NodeOrders]:
    """The orders for the agent. `folder_of` and `data_of` are the folders as the node sees them,
    `client` is the clients' command (empty: idle), `faketime` the path of libfaketime."""
    orders = []
    servers = _by_kind(specs)
    for spec in specs:
        if spec.kind is None:
            command = (*client, folder_of(spec.name)) if client else ()
            orders.append(NodeOrders(spec=spec, command=command))
            continue
        if spec.elsewhere:
            orders.append(NodeOrders(spec=spec, command=(), port=spec.port))
            continue
        members = tuple(
            other.name for other in specs if (other.kind, other.role) == (spec.kind, spec.role)
        )
        here = Here(spec.name, members, data_of(spec.name), programs[spec.kind], servers)
        ordered = _server_orders(spec, spec.kind.server, here)
        orders.append(_faked(ordered, faketime) if spec.faketime else ordered)
    return orders


def _faked(orders: NodeOrders, library: str) -> NodeOrders:
    command = under_faketime(orders.command, library, orders.data)
    files = {**orders.files, FILE: file_text(0)}
    return msgspec.structs.replace(orders, command=command, files=files)


def _by_kind(specs: Iterable[NodeSpec]) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    for spec in specs:
        if spec.kind and spec.role is Role.SERVER:
            names[spec.kind.name] = (*names.get(spec.kind.name, ()), spec.name)
    return names


def _server_orders(spec: NodeSpec, server: Server, here: Here) -> NodeOrders:
    return NodeOrders(
        spec=spec,
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
        version_command=server.version_command(here.program),
        version_pattern=server.version_pattern,
    )
