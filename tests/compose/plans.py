"""Small clusters to try the Docker runtime on."""

from __future__ import annotations

import uuid
from contextlib import closing
from pathlib import Path

from lockcheck.compose.docker.engine import RUN_LABEL, connect
from lockcheck.compose.runtime import ClusterPlan
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind

SERVER = NodeSpec("n1", Role.SERVER, Kind("redis"))
STORAGE = NodeSpec("storage", Role.STORAGE, Kind("redis"))
CLIENT = NodeSpec("c1", Role.CLIENT)


def small_plan(folder: Path, *nodes: NodeSpec) -> ClusterPlan:
    return ClusterPlan(f"test-{uuid.uuid4().hex[:8]}", nodes or (SERVER, STORAGE, CLIENT), folder)


def things_of(run_id: str) -> list[str]:
    """In one question a kind: other tests' things may go away between two."""
    label: dict[str, str | list[str] | bool] = {"label": f"{RUN_LABEL}={run_id}"}
    with closing(connect()) as client:
        containers = client.api.containers(all=True, filters=label)
        found = [name for each in containers for name in each["Names"]]
        found += [each["Name"] for each in client.api.networks(filters=label)]
        found += [each["Name"] for each in client.api.volumes(filters=label)["Volumes"] or ()]
    return sorted(found)
