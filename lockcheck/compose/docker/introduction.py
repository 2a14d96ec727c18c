"""Finds the containers that Compose has brought up: their addresses and first processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from lockcheck.agent.orders import NodeOrders
from lockcheck.compose.docker.compose_file import Names
from lockcheck.compose.docker.engine import engine_trouble
from lockcheck.errors import ClusterError

if TYPE_CHECKING:
    import docker
    from docker.models.containers import Container

LAST_LINES = 5


def introduced(
    client: docker.DockerClient, run_id: str, orders: Iterable[NodeOrders]
) -> list[NodeOrders]:
    """The orders with addresses and first processes; a ClusterError if a container has exited."""
    names = Names(run_id)
    with engine_trouble("asking for the nodes' containers"):
        return [
            _introduced(client.containers.get(names.container(each.name)), each, names)
            for each in orders
        ]


def _introduced(container: Container, orders: NodeOrders, names: Names) -> NodeOrders:
    facts = container.attrs
    if not facts["State"]["Running"]:
        output = container.logs(tail=LAST_LINES).decode(errors="replace").strip()
        raise ClusterError(
            f"{orders.name} exited right after it was started: {output or 'no output'}",
            cure=f"its container runs {' '.join(facts['Config']['Cmd'])}",
        )
    address = facts["NetworkSettings"]["Networks"][names.project]["IPAddress"]
    first = facts["State"]["Pid"]
    return msgspec.structs.replace(orders, address=address, container=first)
