"""From a process that was started to a node that can be used: the agent's first look at each."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from lockcheck.compose.namespaces import inside_network_of
from lockcheck.compose.orders import Probe
from lockcheck.errors import ClusterError
from lockcheck.nemesis.base import wait_until
from lockcheck.nodes import Node, Role
from lockcheck.workloads.worker import READY

INITS = {"docker-init", "tini"}
START_TIMEOUT_S = 30.0
LAST_LINES = 3


async def await_ready(nodes: dict[str, Node], probes: Iterable[Probe], workdir: Path) -> None:
    """Servers answer, seen from a client: the way the clients will come. Clients wait."""
    clients = [node for node in nodes.values() if node.role is Role.CLIENT]
    await asyncio.gather(
        *(_await_answer(nodes[p.node], p.port, clients, workdir) for p in probes),
        *(_await_client(client, workdir) for client in clients),
    )


async def _await_answer(node: Node, port: int, clients: list[Node], workdir: Path) -> None:
    viewer = next(iter(clients), node)
    await _await_start(
        node,
        lambda: _answers(viewer.pid, node.address, port),
        f"answers at {node.address}:{port}",
        workdir,
    )


async def _await_client(node: Node, workdir: Path) -> None:
    ready = workdir / node.name / READY
    await _await_start(node, ready.exists, "is ready for its orders", workdir)


async def _await_start(node: Node, begun: Callable[[], bool], what: str, workdir: Path) -> None:
    try:
        await wait_until(
            lambda: not node.alive or begun(),
            f"{node.name} {what}",
            timeout_s=START_TIMEOUT_S,
            poll_s=0.01,
        )
    finally:
        if not node.alive:
            raise ClusterError(
                f"{node.name} ended as soon as it was started: {last_words(workdir, node.name)}",
                cure=f"its output is in nodes/{node.name}/output.log",
            )


def last_words(workdir: Path, name: str) -> str:
    with suppress(OSError):
        lines = (workdir / name / "output.log").read_text(errors="replace").splitlines()
        return " / ".join(lines[-LAST_LINES:]) or "it said nothing"
    return "it left no output here"


def _answers(viewer_pid: int, address: str, port: int) -> bool:
    """One PING. A client cut off from the world has no view: the caller gave one that has."""
    try:
        with (
            inside_network_of(viewer_pid),
            socket.create_connection((address, port), timeout=0.3) as connection,
        ):
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False


async def main_process(pid: int, name: str) -> int:
    """The node's own process: a container's init is only its parent."""
    proc = Path(f"/proc/{pid}")

    def children() -> list[str]:
        return (proc / "task" / str(pid) / "children").read_text().split()

    try:
        if (proc / "comm").read_text().strip() not in INITS:
            return pid
        await wait_until(lambda: bool(children()), f"{name} starts its program", 10)
        return int(children()[0])
    except (FileNotFoundError, ProcessLookupError, IndexError) as error:
        raise ClusterError(f"{name} ended as soon as it was started") from error


def check_clock_is_ours(node: Node) -> None:
    """Times are compared across nodes: in a time namespace of its own a clock reads otherwise."""
    try:
        theirs, ours = (Path(f"/proc/{who}/ns/time").readlink() for who in (node.pid, "self"))
    except FileNotFoundError:
        return  # this kernel has no such namespaces, or the node is gone: somebody else says so
    if theirs != ours:
        raise ClusterError(
            f"{node.name} is in a time namespace of its own, so its clock cannot be compared",
            cure="start containers without one: their runtime was told to make it",
        )
