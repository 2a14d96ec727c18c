"""Finds the containers that Compose has brought up: their addresses and first processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from lockcheck.agent.orders import NodeOrders
from lockcheck.compose.docker.compose_file import BESIDE, Names
from lockcheck.compose.docker.engine import engine_trouble
from lockcheck.errors import ClusterError

if TYPE_CHECKING:
    import docker
    from docker.models.containers import Container

LAST_LINES = 5


def introduced(
    client: docker.DockerClient, run_id: str, orders: Iterable[NodeOrders], *, beside: bool
) -> list[NodeOrders]:
    """The orders with addresses and first processes; a ClusterError if a container has exited.
    `beside`: clients have a second one."""
    names = Names(run_id)

    def facts_of(container: str) -> dict[str, Any]:
        return _facts(client.containers.get(names.container(container)), container)

    with engine_trouble("asking for the nodes' containers"):
        found = []
        for each in orders:
            facts = facts_of(each.name)
            second = facts_of(f"{each.name}{BESIDE}") if beside and not each.spec.kind else None
            found.append(
                msgspec.structs.replace(
                    each,
                    address=facts["NetworkSettings"]["Networks"][names.project]["IPAddress"],
                    container=facts["State"]["Pid"],
                    beside=second["State"]["Pid"] if second else 0,
                )
            )
        return found


def _facts(container: Container, name: str) -> dict[str, Any]:
    facts: dict[str, Any] = container.attrs
    if not facts["State"]["Running"]:
        output = container.logs(tail=LAST_LINES).decode(errors="replace").strip()
        command = [*(facts["Config"]["Entrypoint"] or ()), *(facts["Config"]["Cmd"] or ())]
        raise ClusterError(
            f"{name} exited right after it was started: {output or 'no output'}",
            cure=f"its container runs {' '.join(command)}",
        )
    return facts
