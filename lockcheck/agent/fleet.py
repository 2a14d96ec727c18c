"""Starts, ends and restarts the nodes of a run, in the same way for both runtimes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from lockcheck.agent.orders import NodeOrders
from lockcheck.agent.own_networks import Network
from lockcheck.agent.place import Place, make_places
from lockcheck.client.worker import DONE, FULL, OUTPUT, READY
from lockcheck.errors import ClusterError, FaultError
from lockcheck.nodes.node import Node, Role, children_of, has_ended
from lockcheck.nodes.waiting import wait_until
from lockcheck.servers.asking.answer import answers

READY_TIMEOUT_S = 30.0
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
        self._places: dict[str, Place] = {}
        self._first: dict[str, subprocess.Popen[bytes]] = {}  # by node: its started process
        self._lives: dict[str, int] = {}
        self.nodes: dict[str, Node] = {}

    # --- the start of the run ----------------------------------------------------------------

    async def launch(self, orders: Sequence[NodeOrders]) -> dict[str, str]:
        """Starts all nodes once they all have addresses; returns the servers' versions."""
        for place in await make_places(orders, self._networks, self._workdir):
            name = place.node.name
            self._places[name], self.nodes[name], self._lives[name] = place, place.node, 0
            if place.orders.data_mb:
                place.write_files()
        kinds = {place.node.spec.kind: place for place in self._places.values()}
        asked = [place for place in kinds.values() if place.orders.version_command]
        turns = [self._start_in_its_turn(place) for place in self._places.values()]
        starting = asyncio.gather(*turns)
        versions = await _versions(asked)
        await starting
        return versions

    async def _start_in_its_turn(self, place: Place) -> None:
        await asyncio.sleep(place.orders.start_after_ms / 1000)
        await self._start(place)

    async def await_ready(self) -> None:
        """Waits until servers answer, asked from a client's network, and until clients report."""
        clients = (node for node in self.nodes.values() if node.role is Role.CLIENT)
        viewer = next(clients, None)
        await asyncio.gather(
            *(self._await_ready(place, viewer or place.node) for place in self._places.values())
        )

    # --- ends and new beginnings -------------------------------------------------------------

    def place(self, name: str) -> Place:
        return self._places[name]

    async def end(self, name: str) -> None:
        """Kills all its processes; returns when they are gone. Its network and its data stay."""
        node = self.nodes[name]
        node.down = True
        await self._kill(node)

    async def start(self, name: str, *, data: bool = True) -> None:
        """Starts a node that was ended, with its data or without. Returns when the node is ready,
        asked from its own network, since others may be cut off from it now."""
        place, node = self._places[name], self.nodes[name]
        if node.alive:
            raise ClusterError(f"{name} is already running")
        if place.orders.data_mb and not data:
            place.empty_data()
            place.write_files()
        for left in (READY, DONE, FULL):
            (self._workdir / name / left).unlink(missing_ok=True)
        self._lives[name] += 1
        await self._start(place)
        await self._await_ready(place, node)
        node.down = False

    async def ready(self, name: str) -> None:
        """Returns when it serves; raises ClusterError if it has exited, or takes too long."""
        await self._await_ready(self._places[name], self.nodes[name])

    async def leader(self) -> str | None:
        """The server that reports that it leads; None if no server does, or several do."""
        asked = [
            place
            for place in self._places.values()
            if place.node.role is Role.SERVER and place.orders.leader and not place.node.down
        ]
        leading = await asyncio.gather(*(self._leads(place) for place in asked))
        leaders = [place.node.name for place, leads in zip(asked, leading, strict=True) if leads]
        return leaders[0] if len(leaders) == 1 else None

    async def _leads(self, place: Place) -> bool:
        question = place.orders.leader
        return question is not None and await answers(
            place.node, (place.node.address, place.orders.port), question
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

    async def _start(self, place: Place) -> None:
        name = place.node.name
        if not place.orders.command:
            return
        with (self._workdir / name / OUTPUT).open("ab") as output:
            first = place.spawn(place.orders.command, output, self._lives[name])
        self._first[name] = first
        if place.enter:
            await its_program(first, name)
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

    async def _await_ready(self, place: Place, viewer: Node) -> None:
        node = place.node
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                for look in count(1):
                    if await self._is_ready(place, viewer):
                        return
                    if look % LOOKS_AT_PROCESSES == 0 and self._has_ended(node):
                        raise ClusterError(
                            f"{node.name} exited right after it was started: "
                            f"{self.last_words(node.name)}",
                            cure=f"its output is in nodes/{node.name}/{OUTPUT}",
                        )
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise ClusterError(
                f"{node.name} was not ready within {READY_TIMEOUT_S:g} s: "
                f"{self.last_words(node.name)}",
                cure=f"its output is in nodes/{node.name}/{OUTPUT}",
            ) from None

    async def _is_ready(self, place: Place, viewer: Node) -> bool:
        if not place.orders.command:
            return True
        if place.orders.ready is None:
            return (self._workdir / place.node.name / READY).exists()
        address = (place.node.address, place.orders.port)
        return await answers(viewer, address, place.orders.ready)

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
        for node in self.nodes.values():
            namespaces = (Path(f"/proc/{pid}/ns/time") for pid in ("self", *node.pids()))
            with suppress(FileNotFoundError):  # a kernel without them, or a node that just exited
                if len({namespace.readlink() for namespace in namespaces}) > 1:
                    raise ClusterError(
                        f"{node.name} is in a time namespace of its own, so its clock cannot be "
                        "compared",
                        cure="start the containers without one: it is a setting of their runtime",
                    )


async def its_program(first: subprocess.Popen[bytes], name: str) -> None:
    """Waits until the command that enters the container has started the program. Without that, the
    container's init would be the program's parent."""
    await wait_until(
        lambda: first.poll() is not None or bool(children_of(first.pid)),
        f"{name} has not started",
        READY_TIMEOUT_S,
    )


async def _versions(places: Iterable[Place]) -> dict[str, str]:
    """The version that each kind of server reports where it runs, by the text of the kind."""
    return {str(place.node.spec.kind): await _version(place) for place in places}


async def _version(place: Place) -> str:
    """The server's version; a text that begins with `unknown` if it cannot be found out."""
    name = place.node.name
    with place.spawn(place.orders.version_command, subprocess.PIPE, life=0) as asked:
        try:
            lacking = f"{name} has not reported its version"
            await wait_until(lambda: asked.poll() is not None, lacking, VERSION_TIMEOUT_S)
        except FaultError as error:
            asked.kill()
            return f"unknown: {error.message}"
        output = (asked.stdout.read() if asked.stdout else b"").decode(errors="replace")
    found = re.search(place.orders.version_pattern, output)
    return found.group().strip() if found else f"unknown: {output.strip() or 'no output'}"
