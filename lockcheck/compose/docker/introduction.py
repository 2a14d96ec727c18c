"""What the engine knows of the containers that Compose has brought up, for those who need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockcheck.compose.docker.compose_file import Names
from lockcheck.compose.docker.engine import engine_trouble
from lockcheck.compose.orders import AdoptedNode
from lockcheck.compose.programs import PROGRAMS
from lockcheck.compose.runtime import ClusterPlan
from lockcheck.errors import ClusterError
from lockcheck.nodes import NodeSpec, Role

if TYPE_CHECKING:
    import docker
    from docker.models.containers import Container

LAST_LINES = 5


def introduced(client: docker.DockerClient, plan: ClusterPlan) -> list[AdoptedNode]:
    """The nodes as the agent is to know them."""
    names = Names(plan.run_id)
    with engine_trouble("asking for the nodes' processes"):
        return [
            _introduced(client.containers.get(names.container(node.name)), node, names)
            for node in plan.nodes
        ]


def _introduced(container: Container, node: NodeSpec, names: Names) -> AdoptedNode:
    facts = container.attrs
    if not facts["State"]["Running"]:
        last_words = container.logs(tail=LAST_LINES).decode(errors="replace").strip()
        raise ClusterError(
            f"{node.name} ended as soon as it was started: {last_words or 'it said nothing'}",
            cure=f"its program is {' '.join(facts['Config']['Cmd'])}",
        )
    address = facts["NetworkSettings"]["Networks"][names.project]["IPAddress"]
    return AdoptedNode(node.name, node.role, address, facts["State"]["Pid"])


def server_versions(client: docker.DockerClient, plan: ClusterPlan) -> dict[str, str]:
    """What each program says of itself, asked in one node of those that run it."""
    names = Names(plan.run_id)
    nodes = {node.program: node.name for node in plan.nodes if node.role is not Role.CLIENT}
    versions = {}
    with engine_trouble("asking the servers their versions"):
        for program, node in nodes.items():
            ask = [PROGRAMS[program].container_command[0], "--version"]
            asked = client.api.exec_create(names.container(node), ask)
            versions[program] = client.api.exec_start(asked["Id"]).decode(errors="replace").strip()
    return versions
