"""`docker compose up` for a run, in a subnet that no other network uses."""

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
TAKEN = "pool overlaps"  # in the engine's error for a subnet that another network has
LAST_LINES = 8
HOST_ROUTES = Path("/proc/net/route")

ComposeDocument = Callable[[IPv4Network], dict[str, object]]


def up(
    compose: Sequence[str], plan: ClusterPlan, taken: list[IPv4Network], on: ComposeDocument
) -> None:
    """Brings up the nodes in the first free subnet that no other run takes meanwhile."""
    trouble = ""
    for subnet in islice(free_subnets(plan.run_id, taken), MOST_SUBNETS_TRIED):
        document = json.dumps(on(subnet), indent=2) + "\n"  # JSON is YAML
        (plan.folder / COMPOSE_FILE).write_text(document)  # for readers only
        trouble = _compose_up(compose, document)
        if TAKEN not in trouble.lower():
            break
    else:
        raise ClusterError(
            f"no free network for the run: every subnet of {SUBNETS} that was tried is taken",
            cure="lockcheck clean, or docker network prune",
        )
    if trouble:
        raise ClusterError(
            f"Compose could not bring up the nodes:\n    {trouble}",
            cure=f"its input is {COMPOSE_FILE} in the run's folder",
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
            _, errors = process.communicate(document, timeout=UP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"no answer within {UP_TIMEOUT_S} s"
        finally:
            process.terminate()  # no effect if it has exited
    if process.returncode == 0:
        return ""
    return "\n    ".join(errors.strip().splitlines()[-LAST_LINES:]) or f"exit {process.returncode}"


def _environment() -> dict[str, str]:
    """This process's, without variables that would add files or names to the run's project."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COMPOSE_")}


def taken_subnets(client: docker.DockerClient) -> list[IPv4Network]:
    """The subnets of the engine's networks and of this host's routes (such as a company's)."""
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
    """The dotted form of an address that the kernel prints as one number in host byte order."""
    return socket.inet_ntoa(struct.pack("=L", int(kernel_hex, 16)))
