"""`compose up` for a run: in a network of its own, whatever else is in the engine."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
from collections.abc import Callable, Sequence
from ipaddress import IPv4Network, ip_network
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lockcheck.compose.docker.compose_file import SUBNETS, free_subnets
from lockcheck.compose.docker.engine import engine_trouble
from lockcheck.compose.runtime import ClusterPlan
from lockcheck.errors import ClusterError

if TYPE_CHECKING:
    import docker

COMPOSE_FILE = "compose.yml"
UP_TIMEOUT_S = 180
MOST_SUBNETS_TRIED = 8
TAKEN = "pool overlaps"  # the engine's words for a subnet that another network has
LAST_LINES = 8
HOST_ROUTES = Path("/proc/net/route")

ComposeDocument = Callable[[IPv4Network], dict[str, object]]


def up(
    compose: Sequence[str], plan: ClusterPlan, taken: list[IPv4Network], on: ComposeDocument
) -> None:
    """Another run may take a subnet after we have looked: then the next one is tried."""
    said = ""
    for subnet in islice(free_subnets(plan.run_id, taken), MOST_SUBNETS_TRIED):
        document = json.dumps(on(subnet), indent=2) + "\n"  # JSON is YAML
        (plan.folder / COMPOSE_FILE).write_text(document)  # for whoever wants to know
        said = _compose_up(compose, document)
        if TAKEN not in said.lower():
            break
    else:
        raise ClusterError(
            f"no free network for the run: every subnet of {SUBNETS} that was tried is taken",
            cure="lockcheck clean, or docker network prune",
        )
    if said:
        raise ClusterError(
            f"Compose could not bring up the nodes:\n    {said}",
            cure=f"what it was given is in {COMPOSE_FILE} in the run's folder",
        )


def _compose_up(compose: Sequence[str], document: str) -> str:
    """Empty if it worked, else its last words. In another session: we handle Ctrl-C ourselves."""
    files = ["--file", "-", "--project-directory", "/", "--env-file", os.devnull]
    command = [*compose, "--ansi", "never", *files, "up"]
    options = ["--detach", "--no-build", "--pull", "never", "--quiet-pull", "--no-color"]
    with subprocess.Popen(
        [*command, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(),
        start_new_session=True,
    ) as process:
        try:
            _, said = process.communicate(document, timeout=UP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"no answer within {UP_TIMEOUT_S} s"
        finally:
            process.terminate()  # nothing happens to one that has ended
    if process.returncode == 0:
        return ""
    return "\n    ".join(said.strip().splitlines()[-LAST_LINES:]) or f"exit {process.returncode}"


def _environment() -> dict[str, str]:
    """Without variables that would add files, profiles or names to the run's project."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COMPOSE_")}


def taken_subnets(client: docker.DockerClient) -> list[IPv4Network]:
    """By the engine's networks, and by this host's routes: to a company's network, for example."""
    with engine_trouble("looking at the engine's networks"):
        networks = client.api.networks()
    pools = [pool for each in networks for pool in each["IPAM"]["Config"] or ()]
    subnets = [ip_network(pool["Subnet"]) for pool in pools if "Subnet" in pool]
    return [subnet for subnet in subnets if isinstance(subnet, IPv4Network)] + _host_routes()


def _host_routes() -> list[IPv4Network]:
    if not HOST_ROUTES.exists():
        return []
    rows = [line.split() for line in HOST_ROUTES.read_text().splitlines()[1:]]
    routes = [IPv4Network((_address(row[1]), _address(row[7]))) for row in rows]
    return [route for route in routes if route.prefixlen > 0]


def _address(kernel_hex: str) -> str:
    """The kernel prints the four bytes as one number, in the machine's byte order."""
    return socket.inet_ntoa(struct.pack("=L", int(kernel_hex, 16)))
