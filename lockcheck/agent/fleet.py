"""Starts, ends and restarts the nodes of a run, in the same way for both runtimes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

from lockcheck.agent.orders import NodeOrders
from lockcheck.agent.own_networks import Network
from lockcheck.agent.place import PlacedNode, placed_nodes
from lockcheck.client.worker import DONE, FULL, OPEN, OUTPUT, READY
from lockcheck.errors import ClusterError, FaultError
from lockcheck.nodes.node import Node, Role, children_of, has_ended
from lockcheck.nodes.waiting import wait_until
from lockcheck.servers.asking.answer import answers

READY_TIMEOUT_S = 60.0
END_TIMEOUT_S = 10.0
VERSION_TIMEOUT_S = 10.0
POLL_S = 0.01
LOOKS_AT_PROCESSES = 10  # polls per look at processes: that reads all of the machine's
LAST_LINES = 3
LONGEST_LINE = 300  # some programs print a whole stack in one line


class Fleet:
    """The nodes of a run. `launch` fills `nodes` once."""

    def __init__(self, workdir: Path, networks: Sequence[Network] = ()) -> None:
        self._networks = networks
        self._workdir = workdir
        self._first: dict[str, subprocess.Popen[bytes]] = {}  # by node: its started process
        self._lives: dict[str, int] = {}
        self.nodes: dict[str, PlacedNode] = {}

    # --- the start of the run ----------------------------------------------------------------

    async def launch(self, orders: Sequence[NodeOrders]) -> dict[str, str]:
        """Starts all nodes once they all have addresses; returns the servers' versions."""
        for node in await placed_nodes(orders, self._networks, self._workdir):
            self.nodes[node.name], self._lives[node.name] = node, 0
            node.write_files()
        kinds = {node.spec.kind: node for node in self.nodes.values()}
        asked = [node for node in kinds.values() if node.orders.version_command]
        turns = [self._start_in_its_turn(node) for node in self.nodes.values()]
        starting = asyncio.gather(*turns)
        versions = await _versions(asked)
        await starting
        return versions

    async def _start_in_its_turn(self, node: PlacedNode) -> None:
        await asyncio.sleep(node.orders.start_after_ms / 1000)
        await self._start(node)

    async def await_ready(self) -> None:
        """Waits until servers answer, asked from a client's network, and until clients report."""
        clients = (node for node in self.nodes.values() if node.role is Role.CLIENT)
        viewer = next(clients, None)
        await asyncio.gather(
            *(self._await_ready(node, viewer or node) for node in self.nodes.values())
        )

    # --- ends and new beginnings -------------------------------------------------------------

    async def end(self, name: str) -> None:
        """Kills all its processes; returns when they are gone. Its network and its data stay."""
        node = self.nodes[name]
        node.down = True
        await self._kill(node)

    async def start(self, name: str, *, data: bool = True) -> None:
        """Starts a node that was ended, with its data or without. Returns when the node is ready,
        asked from its own network, since others may be cut off from it now."""
        node = self.nodes[name]
        if node.alive:
            raise ClusterError(f"{name} is already running")
        if not data:
            node.empty_data()
            node.write_files()
        for left in (READY, DONE, FULL):
            (self._workdir / name / left).unlink(missing_ok=True)
        self._lives[name] += 1
        await self._start(node)
        await self._await_ready(node, node)
        node.down = False

    async def ready(self, name: str) -> None:
        """Returns when it serves; raises ClusterError if it has exited, or takes too long."""
        await self._await_ready(self.nodes[name], self.nodes[name])

    async def leader(self) -> str | None:
        """The server that reports that it leads; None if no server does, or several do."""
        asked = [
            node
            for node in self.nodes.values()
            if node.role is Role.SERVER and node.orders.leader and not node.down
        ]
        leading = await asyncio.gather(*(self._leads(node) for node in asked))
        leaders = [node.name for node, leads in zip(asked, leading, strict=True) if leads]
        return leaders[0] if len(leaders) == 1 else None

    async def _leads(self, node: PlacedNode) -> bool:
        question = node.orders.leader
        return question is not None and await answers(
            node, (node.address, node.orders.port), question
        )

    def leave(self) -> None:
        """Kills all processes, and those that keep containers open."""
        for node in self.nodes.values():
            node.down = True
            node.signal(signal.SIGKILL)
            for keeper in node.keepers:
                with suppress(ProcessLookupError):
                    os.kill(keeper, signal.SIGKILL)

    # --- one life ----------------------------------------------------------------------------

    async def _start(self, node: PlacedNode) -> None:
        name = node.name
        if not node.orders.command:
            return
        with (self._workdir / name / OUTPUT).open("ab") as output:
            first = node.spawn(node.orders.command, output, self._lives[name])
        self._first[name] = first
        if node.enter:
            await _its_program(first, name)
            first.kill()  # it is not needed, and would stop whenever the program is stopped
            first.wait()

    async def _kill(self, node: Node) -> None:
        """Kills until there are no processes left: one may have been forked after a look."""
        struck: set[int] = set()

        def gone() -> bool:
            found = node.pids()
            struck.update(found)
            node.signal(signal.SIGKILL)
            return not found and all(map(has_ended, struck))

        await wait_until(gone, f"{node.name} still has processes", END_TIMEOUT_S)
        if first := self._first.get(node.name):
            first.poll()  # reaps it

    async def await_open(self, clients: Iterable[str]) -> None:
        """Waits until these clients have opened their locks."""
        nodes = map(self.nodes.__getitem__, clients)
        when = "by itself, before its lock was open"
        opening = (self._await(node, partial(self._is_open, node), when) for node in nodes)
        await asyncio.gather(*opening)

    async def _is_open(self, node: PlacedNode) -> bool:
        return (self._workdir / node.name / OPEN).exists()

    async def _await_ready(self, node: PlacedNode, viewer: Node) -> None:
        is_ready = partial(self._is_ready, node, viewer)
        await self._await(node, is_ready, "right after it was started")

    async def _await(
        self, node: PlacedNode, is_so: Callable[[], Awaitable[bool]], when: str
    ) -> None:
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                for look in count(1):
                    if await is_so():
                        return
                    if look % LOOKS_AT_PROCESSES == 0 and self._has_ended(node):
                        raise ClusterError(
                            f"{node.name} exited {when}: {self.last_words(node.name)}",
                            cure=f"its output is in nodes/{node.name}/{OUTPUT}",
                        )
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise ClusterError(
                f"{node.name} was not ready within {READY_TIMEOUT_S:g} s: "
                f"{self.last_words(node.name)}",
                cure=f"its output is in nodes/{node.name}/{OUTPUT}",
            ) from None

    async def _is_ready(self, node: PlacedNode, viewer: Node) -> bool:
        if not node.orders.command:
            return True
        if node.orders.ready is None:
            return (self._workdir / node.name / READY).exists()
        address = (node.address, node.orders.port)
        return await answers(viewer, address, node.orders.ready)

    def _has_ended(self, node: Node) -> bool:
        """Whether nothing runs: the started process may have exited and left others."""
        return self._first[node.name].poll() is not None and not node.alive

    def last_words(self, name: str) -> str:
        if self.found_no_space(name):
            return "no space was left for its history"
        with suppress(OSError):
            lines = (self._workdir / name / OUTPUT).read_text(errors="replace").splitlines()
            last = (line[:LONGEST_LINE] for line in lines[-LAST_LINES:])
            return " / ".join(last) or "no output"
        return "its output cannot be read"

    def found_no_space(self, name: str) -> bool:
        return (self._workdir / name / FULL).exists()

    def check_clocks(self) -> None:
        """Refuses nodes in another time namespace: times are compared across nodes."""
        own = set(_time_namespaces("self"))
        for node in self.nodes.values():
            if not own.issuperset(_time_namespaces(*node.pids())):
                raise ClusterError(
                    f"{node.name} is in a time namespace of its own, so its clock cannot be "
                    "compared",
                    cure="start the containers without one: it is a setting of their runtime",
                )


def _time_namespaces(*pids: int | str) -> Iterator[Path]:
    for pid in pids:
        # A kernel without them; or a process that has just ended, or is ending.
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            yield Path(f"/proc/{pid}/ns/time").readlink()


async def _its_program(first: subprocess.Popen[bytes], name: str) -> None:
    """Waits until the command that enters the container has started the program. Without that, the
    container's init would be the program's parent."""
    await wait_until(
        lambda: first.poll() is not None or bool(children_of(first.pid)),
        f"{name} has not started",
        READY_TIMEOUT_S,
    )


async def _versions(nodes: Iterable[PlacedNode]) -> dict[str, str]:
    """The version that each kind of server reports where it runs, by the text of the kind."""
    return {str(node.spec.kind): await _version(node) for node in nodes}


async def _version(node: PlacedNode) -> str:
    """The server's version; a text that begins with `unknown` if it cannot be found out."""
    name = node.name
    with node.spawn(node.orders.version_command, subprocess.PIPE, life=0) as asked:
        try:
            lacking = f"{name} has not reported its version"
            await wait_until(lambda: asked.poll() is not None, lacking, VERSION_TIMEOUT_S)
        except FaultError as error:
            asked.kill()
            return f"unknown: {error.message}"
        output = (asked.stdout.read() if asked.stdout else b"").decode(errors="replace")
    found = re.search(node.orders.version_pattern, output)
    return found.group().strip() if found else f"unknown: {output.strip() or 'no output'}"
