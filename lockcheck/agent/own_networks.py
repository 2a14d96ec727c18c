"""The local runtime's network: a namespace for each node, joined by a bridge in the agent's own.

A node's namespace is created before its first process and outlives it, so that a restarted server
has its old address, MAC and firewall rules.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lockcheck.errors import ClusterError
from lockcheck.nodes.namespaces import MS_BIND, inside, mount, new_network

SUBNET = "10.77.0"
FIRST_HOST = 10
BRIDGE = "lockcheck0"
HOSTS = Path("/etc/hosts")


class Network(NamedTuple):
    address: str
    handle: int


def make_networks(count: int) -> list[Network]:
    handles = [new_network() for _ in range(count)]
    if handles:
        _wire_up(handles)
    return [Network(_address(number), handle) for number, handle in enumerate(handles)]


def tell_names(addresses: dict[str, str], hosts: Path) -> None:
    """Nodes find each other by name. The file hides the host's own for this run only."""
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
    """Fixed: with a new one, a restarted node would not be found for tens of seconds."""
    return f"02:00:0a:4d:00:{FIRST_HOST + number:02x}"


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
