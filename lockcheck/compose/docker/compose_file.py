"""Generates the Compose file of a cluster from its plan: a container for each NodeSpec."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network

from lockcheck.backends.program import FOLDER_THERE, TOOLS_THERE
from lockcheck.compose.docker.engine import NODE_LABEL, PART_LABEL, RUN_LABEL
from lockcheck.compose.launching import image_of
from lockcheck.compose.runtime import ClusterPlan
from lockcheck.errors import ClusterError
from lockcheck.nodes.node import NodeSpec

RUN_FOLDER = "/lockcheck/run"  # the run's volume, in the agent and in the clients
DATA_FOLDER = "/lockcheck/data"  # a tmpfs, in servers that keep data
SUBNETS = IPv4Network("10.213.0.0/16")
FIRST_HOST = 10
MOST_NODES = 240

NETWORK = "nodes"  # its name in the document; in the engine it has the project's name
VOLUME, TOOLS = "run", "tools"
BESIDE = "-program"  # after a client's name: the container of the user's own image


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a run's project, volume and containers in the engine."""

    run_id: str

    @property
    def project(self) -> str:
        return "lockcheck-" + re.sub(r"[^a-z0-9]+", "-", self.run_id.lower()).strip("-")

    @property
    def volume(self) -> str:
        return f"{self.project}-run"

    @property
    def tools(self) -> str:
        return f"{self.project}-tools"

    @property
    def agent(self) -> str:
        return f"{self.project}--agent"  # no node's container can have this name

    def container(self, node: str) -> str:
        return f"{self.project}-{node}"


def compose_document(
    plan: ClusterPlan, images: Mapping[str, str], subnet: IPv4Network, sysctls: Mapping[str, str]
) -> dict[str, object]:
    names = Names(plan.run_id)
    placed = addresses(plan.nodes, subnet)
    services = {
        node.name: _service(node, plan, _image(node, plan, images), placed[node.name], sysctls)
        for node in plan.nodes
    }
    beside = [node for node in plan.nodes if node.kind is None and plan.program_image]
    services |= {f"{node.name}{BESIDE}": _beside(node, plan) for node in beside}
    return {
        "name": names.project,
        "services": services,
        "networks": {
            NETWORK: {
                "name": names.project,
                "internal": True,  # no traffic in or out; the agent enters through the kernel
                "ipam": {"config": [{"subnet": str(subnet)}]},
                "labels": {RUN_LABEL: plan.run_id},
            }
        },
        "volumes": {  # created with the agent
            VOLUME: {"name": names.volume, "external": True},
            **({TOOLS: {"name": names.tools, "external": True}} if beside else {}),
        },
    }


def addresses(nodes: Iterable[NodeSpec], subnet: IPv4Network) -> dict[str, str]:
    nodes = list(nodes)
    if len(nodes) > MOST_NODES:
        raise ClusterError(
            f"a run on Docker can have {MOST_NODES} nodes, and this one wants {len(nodes)}",
            cure="ask for fewer clients",
        )
    return {node.name: str(subnet[FIRST_HOST + place]) for place, node in enumerate(nodes)}


def _beside(node: NodeSpec, plan: ClusterPlan) -> dict[str, object]:
    """A container of the user's own image, in the client's network. Nothing is needed in the image:
    what keeps it open is ours."""
    names = Names(plan.run_id)
    return {
        "image": plan.program_image,
        "container_name": names.container(f"{node.name}{BESIDE}"),
        "entrypoint": [f"{TOOLS_THERE}/busybox", "sleep", "infinity"],
        "command": [],
        "network_mode": f"service:{node.name}",
        "volumes": [f"{TOOLS}:{TOOLS_THERE}:ro"],
        **_kept_open(names),
        "labels": {RUN_LABEL: names.run_id, PART_LABEL: "program", NODE_LABEL: node.name},
    }


def _kept_open(names: Names) -> dict[str, object]:
    return {
        "environment": {"LOCKCHECK_RUN": names.run_id},
        "init": True,  # reaps orphaned processes of a killed program
        "restart": "no",
        "stop_grace_period": "0s",
        # Not the engine's default, which may be unreadable: a container's last output is reported.
        "logging": {"driver": "json-file", "options": {"max-size": "20m"}},
    }


def _image(node: NodeSpec, plan: ClusterPlan, images: Mapping[str, str]) -> str:
    own = plan.client_image if node.kind is None else ""
    return own or images[image_of(node)]


def _service(
    node: NodeSpec, plan: ClusterPlan, image: str, address: str, sysctls: Mapping[str, str]
) -> dict[str, object]:
    names = Names(plan.run_id)
    return {
        "image": image,
        "container_name": names.container(node.name),
        "hostname": node.name,
        "command": ["sleep", "infinity"],
        "cap_add": ["NET_ADMIN"],
        "sysctls": dict(sysctls),
        "networks": {NETWORK: {"ipv4_address": address}},
        "volumes": _mounts(plan) if node.kind is None else [],
        "tmpfs": _memory(node),
        **_kept_open(names),
        "labels": {RUN_LABEL: names.run_id, PART_LABEL: "node", NODE_LABEL: node.name},
    }


def _mounts(plan: ClusterPlan) -> list[object]:
    """Of a client. The user's folder must be on the engine's host; it is not made there."""
    own = {
        "type": "bind",
        "source": plan.client_folder,
        "target": FOLDER_THERE,
        "read_only": True,
        "bind": {"create_host_path": False},
    }
    return [f"{VOLUME}:{RUN_FOLDER}", *([own] if plan.client_folder else [])]


def _memory(node: NodeSpec) -> list[str]:
    size_mb = node.server.data_mb if node.server and not node.elsewhere else 0
    return [f"{DATA_FOLDER}:size={size_mb}m,mode=0700"] if size_mb else []


def free_subnets(run_id: str, taken: Iterable[IPv4Network]) -> Iterator[IPv4Network]:
    """The subnets in an order by the run's id, so that runs that start together rarely collide."""
    taken = list(taken)
    subnets = list(SUBNETS.subnets(new_prefix=24))
    random.Random(run_id).shuffle(subnets)
    return (subnet for subnet in subnets if not any(map(subnet.overlaps, taken)))


def sysctls_for(kernel: str, engine: str) -> dict[str, str]:
    """Settings with which connections survive a partition and recover soon after it (see
    `own_networks.py`), without those that this kernel or engine refuses."""
    settings = {"net.ipv4.tcp_retries2": "120"}
    if _first_two(kernel) >= (6, 15):
        settings["net.ipv4.tcp_rto_max_ms"] = "1000"
    if _first_two(engine) < (27, 0):  # later ones take no setting of one interface
        settings["net.ipv4.neigh.eth0.retrans_time_ms"] = "50"
    return settings


def _first_two(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
