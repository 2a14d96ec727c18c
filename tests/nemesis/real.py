"""Real processes in real networks: a bridge, and behind each of its ports a node."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations, starmap

import pytest

from lockcheck.errors import ClusterError
from lockcheck.nemesis.network.arrivals import Arrivals
from lockcheck.nemesis.network.links import Link
from lockcheck.nodes.namespaces import enter_network, inside, new_network
from lockcheck.nodes.node import Node, NodeSpec, Role
from tests.waiting import wait_for

PLUGGED_IN_S = 20.0
IDLE = "import threading; threading.Thread(target=input).start(); input()"  # two threads
FORKED = f"import os; os.fork(); {IDLE}"


class RealNode(Node):
    def __init__(self, name: str, role: Role, address: str, network: int) -> None:
        super().__init__(NodeSpec(name, role), address, network)
        self.process: subprocess.Popen[bytes] | None = None
        self.starts: list[bool] = []  # with its data, or without

    def run(self, program: str = IDLE, threads: int = 2) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: enter_network(self.network),  # noqa: PLW1509 - one thread
        )
        wait_for(lambda: len(self.thread_states()) == threads, f"{self.name} is there")

    def end(self) -> None:
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        wait_for(lambda: not self.alive, f"{self.name} is gone")


class RealFleet:
    def __init__(self, nodes: dict[str, RealNode]) -> None:
        self.nodes = nodes
        self.leading: str | None = None

    async def end(self, name: str) -> None:
        self.nodes[name].down = True
        self.nodes[name].end()

    async def start(self, name: str, *, data: bool = True) -> None:
        self.nodes[name].starts.append(data)
        self.nodes[name].run()
        self.nodes[name].down = False

    async def ready(self, name: str) -> None:
        if not self.nodes[name].alive:
            raise ClusterError(f"{name} has ended")

    async def leader(self) -> str | None:
        return self.leading


@contextmanager
def cluster(*names: str) -> Iterator[dict[str, RealNode]]:
    """Nodes without a process yet. r1 is a server, s1 the storage, c1 a client."""
    if os.geteuid():
        pytest.skip("networks of their own are made by root here; an ordinary user needs a run")
    roles = {"r": Role.SERVER, "w": Role.SERVER, "s": Role.STORAGE, "c": Role.CLIENT}
    home, networks = new_network(), [new_network() for _ in names]
    nodes = {
        name: RealNode(name, roles[name[0]], f"10.78.0.{10 + number}", network)
        for number, (name, network) in enumerate(zip(names, networks, strict=True))
    }
    _wire_up(home, nodes)
    _await_arrivals(nodes)
    try:
        yield nodes
        strays = {name: found for name, node in nodes.items() if (found := astray(node))}
        assert not strays, "a cut was left behind"
        asleep = {name for name, node in nodes.items() if {"T", "t"} & set(node.thread_states())}
        assert not asleep, "a pause was left behind"
    finally:
        for node in nodes.values():
            node.end()
        for network in (home, *networks):
            os.close(network)


def _await_arrivals(nodes: dict[str, RealNode]) -> None:
    """The kernel may take a second to see that a cable has been plugged in."""
    arrivals = Arrivals(nodes.values())
    mute = asyncio.run(arrivals.all_arrive(starmap(Link, permutations(nodes, 2)), PLUGGED_IN_S))
    arrivals.close()
    assert not mute, "networks that were just made reach each other"


def astray(node: RealNode) -> list[str]:
    """Addresses that are written down for good: the kernel writes down none."""
    from pyroute2 import IPRoute

    with node.inside_network(), IPRoute() as network:
        entries = [e for e in network.get_neighbours(family=2) if e["state"] & 0x80]
        return [str(entry.get_attr("NDA_DST")) for entry in entries]


def _wire_up(home: int, nodes: dict[str, RealNode]) -> None:
    from pyroute2 import IPRoute

    with inside(home), IPRoute() as here:
        here.link("add", ifname="bridge", kind="bridge")
        (bridge,) = here.link_lookup(ifname="bridge")
        here.link("set", index=bridge, state="up")
        for number, node in enumerate(nodes.values()):
            peer = {"ifname": "eth0", "net_ns_fd": node.network}
            here.link("add", ifname=f"port{number}", kind="veth", peer=peer)
            (port,) = here.link_lookup(ifname=f"port{number}")
            here.link("set", index=port, master=bridge, state="up")
    for node in nodes.values():
        with node.inside_network(), IPRoute() as network:
            for device in ("lo", "eth0"):
                network.link("set", index=network.link_lookup(ifname=device)[0], state="up")
            (cable,) = network.link_lookup(ifname="eth0")
            network.addr("add", index=cable, address=node.address, prefixlen=24)
