"""The local runtime's network: a namespace for each node, joined by a bridge in the agent's own.

A node's namespace is created before its first process and outlives it, so that a restarted server
has its old address, MAC and firewall rules.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lockcheck.errors import ClusterError
from lockcheck.nodes.namespaces import MS_BIND, inside, mount, new_network
from lockcheck.nodes.netlink import CREATE, EXCLUSIVE, Kernel, attribute, text

SUBNET = "10.77.0"
FIRST_HOST = 10
PREFIX_BITS = 24
BRIDGE, CABLE = "lockcheck0", "eth0"
HOSTS = Path("/etc/hosts")

NEW_LINK, NEW_ADDRESS = 16, 20  # RTM_NEWLINK, RTM_NEWADDR
LINK = struct.Struct("=BxHiII")  # family, type, index, flags, which of them are set
ADDRESS = struct.Struct("=BBBBi")  # family, prefix, flags, scope, index of the link
UP = 1  # IFF_UP
HARDWARE, NAME, MASTER, INFO, NETWORK = 1, 3, 10, 18, 28  # IFLA_ADDRESS ... IFLA_NET_NS_FD
KIND, DATA, PEER = 1, 2, 1  # IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER
AT_ONCE = attribute(1, bytes(4))  # IFLA_BR_FORWARD_DELAY: a new port forwards at once
LOCAL = 2  # IFA_LOCAL


class Network(NamedTuple):
    address: str
    handle: int


def make_networks(count: int) -> list[Network]:
    handles = [new_network() for _ in range(count)]
    if handles:
        _wire_up(handles)
    return [Network(_address(number), handle) for number, handle in enumerate(handles)]


def write_hosts(addresses: dict[str, str], hosts: Path) -> None:
    """Writes the nodes' names to /etc/hosts, for this run only: nodes find each other by name."""
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
    hosts.write_text("\n".join(lines) + "\n")
    try:
        mount(str(hosts), HOSTS, flags=MS_BIND)
    except OSError as error:
        raise ClusterError(
            f"{HOSTS} cannot be replaced for the nodes: {error.strerror}",
            cure=f"make an empty {HOSTS} if there is none, or use --runtime docker",
        ) from error


def _address(number: int) -> str:
    return f"{SUBNET}.{FIRST_HOST + number}"


def _wire_up(networks: list[int]) -> None:
    """Makes a bridge here, and a cable from it into each network."""
    with Kernel() as kernel:
        kernel.ask(NEW_LINK, 0, _link_up("lo"))
        kernel.ask(NEW_LINK, CREATE | EXCLUSIVE, _new_link(BRIDGE, "bridge", AT_ONCE))
        kernel.ask(NEW_LINK, 0, _link_up(BRIDGE))
        to_bridge = attribute(MASTER, struct.pack("=i", socket.if_nametoindex(BRIDGE)))
        for number, network in enumerate(networks):
            port, other_end = f"port{number}", attribute(PEER, _other_end(number, network))
            kernel.ask(NEW_LINK, CREATE | EXCLUSIVE, _new_link(port, "veth", other_end))
            kernel.ask(NEW_LINK, 0, _link_up(port) + to_bridge)
    for number, network in enumerate(networks):
        with inside(network):
            _configure(_address(number))


def _new_link(name: str, kind: str, data: bytes) -> bytes:
    info = text(KIND, kind) + attribute(DATA, data)
    return LINK.pack(0, 0, 0, 0, 0) + text(NAME, name) + attribute(INFO, info)


def _other_end(number: int, network: int) -> bytes:
    """The node's end. With a new hardware address a restarted node would be unreachable long."""
    where = attribute(NETWORK, struct.pack("=i", network))
    mac = attribute(HARDWARE, bytes.fromhex(f"02000a4d00{FIRST_HOST + number:02x}"))
    return LINK.pack(0, 0, 0, 0, 0) + text(NAME, CABLE) + where + mac


def _link_up(name: str) -> bytes:
    return LINK.pack(0, 0, socket.if_nametoindex(name), UP, UP)


def _configure(address: str) -> None:
    with Kernel() as kernel:
        kernel.ask(NEW_LINK, 0, _link_up("lo"))
        own = ADDRESS.pack(socket.AF_INET, PREFIX_BITS, 0, 0, socket.if_nametoindex(CABLE))
        own += attribute(LOCAL, socket.inet_aton(address))
        kernel.ask(NEW_ADDRESS, CREATE | EXCLUSIVE, own)
        kernel.ask(NEW_LINK, 0, _link_up(CABLE))
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
