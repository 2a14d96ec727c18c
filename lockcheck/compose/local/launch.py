"""The local runtime's nodes: each a process in a network namespace of its own, on one bridge.

Runs in the agent, which is the first process of the run's own PID namespace and lives in a network
namespace that holds nothing but the bridge. A node's namespace is made before its process and
outlives it, so that a restarted server has its old address, MAC and firewall rules.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from lockcheck.compose.namespaces import (
    die_with_parent,
    enter_network,
    inside,
    new_network,
)
from lockcheck.nodes import Node, Role

SUBNET = "10.77.0"
BRIDGE = "lockcheck0"


class LaunchSpec(msgspec.Struct, frozen=True):
    """What the command line found out for the agent: which command runs which node."""

    name: str
    role: Role
    command: tuple[str, ...]


def launch(specs: Iterable[LaunchSpec], workdir: Path) -> dict[str, Node]:
    specs = list(specs)
    networks = [new_network() for _ in specs]
    _wire_up(networks)
    nodes = {}
    for number, (spec, network) in enumerate(zip(specs, networks, strict=True)):
        folder = workdir / spec.name
        folder.mkdir(parents=True, exist_ok=True)
        process = _start(spec.command, network, folder)
        nodes[spec.name] = Node(spec.name, spec.role, _address(number), process.pid)
    return nodes


def _address(number: int) -> str:
    return f"{SUBNET}.{10 + number}"


def _start(command: tuple[str, ...], network: int, folder: Path) -> subprocess.Popen[bytes]:
    def in_its_place() -> None:
        enter_network(network)
        die_with_parent()

    with (folder / "output.log").open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
            preexec_fn=in_its_place,  # noqa: PLW1509 - the agent has one thread
        )


def _wire_up(networks: list[int]) -> None:
    """A bridge here, and a cable from it into each network."""
    from pyroute2 import IPRoute

    with IPRoute() as here:
        here.link("set", index=here.link_lookup(ifname="lo")[0], state="up")
        here.link("add", ifname=BRIDGE, kind="bridge", br_stp_state=0, br_forward_delay=0)
        bridge = here.link_lookup(ifname=BRIDGE)[0]
        here.link("set", index=bridge, state="up")
        for number, network in enumerate(networks):
            peer = {"ifname": "eth0", "net_ns_fd": network, "address": _mac(number)}
            here.link("add", ifname=f"port{number}", kind="veth", peer=peer)
            port = here.link_lookup(ifname=f"port{number}")[0]
            here.link("set", index=port, master=bridge, state="up")
    for number, network in enumerate(networks):
        with inside(network):
            _configure(_address(number))


def _mac(number: int) -> str:
    """Fixed: behind a new one, a restarted node would not be found for tens of seconds."""
    return f"02:00:0a:4d:00:{10 + number:02x}"


def _configure(address: str) -> None:
    from pyroute2 import IPRoute

    with IPRoute() as here:
        here.link("set", index=here.link_lookup(ifname="lo")[0], state="up")
        cable = here.link_lookup(ifname="eth0")[0]
        here.addr("add", index=cable, address=address, prefixlen=24)
        here.link("set", index=cable, state="up")
    _tune_network()


def _tune_network() -> None:
    """So that connections come back soon after a partition, and survive it."""
    settings = {
        "neigh/eth0/retrans_time_ms": "50",  # one lost ARP request must not cost a second
        "tcp_rto_max_ms": "1000",
        "tcp_retries2": "120",
    }
    for name, value in settings.items():
        # Not every kernel has each of them, or lets a user namespace set it; none is essential.
        with suppress(FileNotFoundError, PermissionError):
            Path(f"/proc/sys/net/ipv4/{name}").write_text(value)
