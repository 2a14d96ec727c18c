"""Makes a server's data folder unwritable: it is full, or mounted read-only.

It is full when its limit is lowered to what is in use. Before it is mounted read-only, the server
is killed, and then restarted. Many servers exit then: that is no breakdown, healing restarts them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from errno import EINVAL, ENOSPC, EROFS, errorcode
from pathlib import Path

from lockcheck.errors import ClusterError, FaultError
from lockcheck.history import Effect
from lockcheck.nemesis import aims
from lockcheck.nemesis.base import FaultKind, Fleet, Plan, Refusal, Step, Strike, each_of
from lockcheck.nemesis.parameters import flag
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.filesystems import reconfigure
from lockcheck.nodes.node import Node

READ_ONLY = flag("read-only", "it is mounted read-only, instead of being full")
PROBE = "lockcheck-probe"
PAGE = os.sysconf("SC_PAGE_SIZE")
TRIES = 100  # the server may write between reading the usage and setting the limit
SERVES_S = 3.0  # how long a server that has room again gets until it serves
STARTED_S = 5.0  # how long a server on a read-only folder gets to start: most exit at once


class Folder:
    """The data folder of a node: the root of a file system of its own."""

    def __init__(self, node: Node) -> None:
        if node.data is None:
            raise FaultError(f"{node.name} keeps no data")
        self.path = node.data
        self._limit = self._size()

    def fill(self) -> None:
        for _ in range(TRIES):
            about = os.statvfs(self.path)
            in_use = (about.f_blocks - about.f_bfree) * about.f_frsize
            try:
                return reconfigure(self.path, "size", str(max(in_use, PAGE)))
            except OSError as error:
                if error.errno != EINVAL:
                    raise
        raise FaultError(f"{self.path.name} grew too fast to be filled")

    def make_room(self) -> None:
        reconfigure(self.path, "size", str(self._limit))
        if self._size() != self._limit:
            raise FaultError(f"it has {self._size()} bytes, and had {self._limit}")

    def _size(self) -> int:
        about = os.statvfs(self.path)
        return about.f_blocks * about.f_frsize

    def write_error(self) -> int:
        """The error number of a trial write; 0 if it succeeded."""
        probe = self.path / PROBE
        try:
            probe.write_bytes(b"x" * PAGE)
        except OSError as error:
            return error.errno or 0
        else:
            return 0
        finally:
            _remove(probe)


def _remove(probe: Path) -> None:
    try:
        probe.unlink(missing_ok=True)
    except OSError as error:
        if error.errno != EROFS:  # on a read-only folder there is no probe to remove
            raise


class Full:
    def __init__(self, nodes: Iterable[Node], fleet: Fleet) -> None:
        self._folders = {node: Folder(node) for node in nodes}
        self._fleet = fleet

    async def inject(self) -> None:
        for node, folder in self._folders.items():
            node.may_end = True
            folder.fill()

    async def prove(self) -> str:
        return _refused(self._folders, ENOSPC)

    async def heal(self) -> None:
        for folder in self._folders.values():
            folder.make_room()
        _check_writable(self._folders)
        await each_of(self._await(node) for node in self._folders if node.may_end)

    async def _await(self, node: Node) -> None:
        """Restarts the server if it has exited or does not become ready."""
        try:
            async with asyncio.timeout(SERVES_S):
                await self._fleet.ready(node.name)
        except (ClusterError, TimeoutError):
            await _start_again(node, self._fleet)
        node.may_end = False


class ReadOnly:
    def __init__(self, nodes: Iterable[Node], fleet: Fleet) -> None:
        self._folders = {node: Folder(node) for node in nodes}
        self._fleet = fleet
        self._struck: set[Node] = set()
        self._became: list[str] = []

    async def inject(self) -> None:
        await each_of(self._strike(node, folder) for node, folder in self._folders.items())

    async def _strike(self, node: Node, folder: Folder) -> None:
        self._struck.add(node)
        await self._fleet.end(node.name)
        reconfigure(folder.path, "ro")
        node.may_end = True
        try:
            async with asyncio.timeout(STARTED_S):
                await self._fleet.start(node.name)
        except (ClusterError, TimeoutError):
            became = "runs but does not serve" if node.alive else "exited on start"
        else:
            became = "serves"
        self._became.append(f"{node.name} {became}")

    async def prove(self) -> str:
        return "; ".join((_refused(self._folders, EROFS), *self._became))

    async def heal(self) -> None:
        for node in self._struck:
            reconfigure(self._folders[node].path, "rw")
        _check_writable(self._folders)
        await each_of(self._start(node) for node in tuple(self._struck))

    async def _start(self, node: Node) -> None:
        await _start_again(node, self._fleet)
        node.may_end = False
        self._struck.discard(node)


async def _start_again(node: Node, fleet: Fleet) -> None:
    await fleet.end(node.name)
    server = node.spec.server
    if server is not None and node.data is not None:
        server.tidied(node.data)
    await fleet.start(node.name)


def _refused(folders: dict[Node, Folder], wanted: int) -> str:
    for node, folder in folders.items():
        if (number := folder.write_error()) != wanted:
            how = errorcode[number] if number else "success"
            raise FaultError(f"a write on {node.name} ends with {how}, not {errorcode[wanted]}")
    where = ", ".join(node.name for node in folders)
    return f"a write in the data folder of {where} ends with {errorcode[wanted]}"


def _check_writable(folders: dict[Node, Folder]) -> None:
    for node, folder in folders.items():
        if number := folder.write_error():
            raise FaultError(f"{node.name} still cannot write: {errorcode[number]}")


# --- what it strikes, and when not ---------------------------------------------------------------


def _strike(step: Step, nodes: tuple[str, ...], scene: Scene) -> Strike:
    struck = [scene.nodes[name] for name in nodes]
    kind = ReadOnly if step.setting(READ_ONLY.name) else Full
    return kind(struck, scene.fleet)


def _why_not(_step: Step, plan: Plan) -> Refusal | None:
    if not any(kind.server.data_mb for kind in plan.kinds):
        return Refusal(
            f"the servers of {plan.backend} keep no data", "use another fault, such as kill"
        )
    return None


KIND = FaultKind(
    name="disk",
    summary="a server's data folder is full, or read-only",
    effect=Effect.STARVES,
    aims=(aims.SERVER, aims.LEADER, aims.MINORITY, aims.MAJORITY, aims.ALL),
    strike=_strike,
    parameters=(READ_ONLY,),
    why_not=_why_not,
    needs="Linux 5.2 or later",
)
