"""A node: a name, an address, a network namespace and all the processes in it, in any runtime."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from lockcheck.nodes.namespaces import inside
from lockcheck.servers import Server
from lockcheck.servers.kind import Kind
from lockcheck.servers.wire import Address

PROC = Path("/proc")
DEAD = {"Z", "X"}


class Role(StrEnum):
    SERVER = "server"  # of the lock under test
    STORAGE = "storage"  # what the lock protects; only struck by faults that name it
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What a node is to be: a server of that kind, or one of lockcheck's own clients (None).

    One of a server that is there already has that one's address in `elsewhere`. It is a network
    without processes: clients connect to it, and are connected to the server.
    """

    name: str
    role: Role
    kind: Kind | None = None
    faketime: bool = field(default=False, kw_only=True)  # its program is to run under libfaketime
    elsewhere: Address | None = field(default=None, kw_only=True)

    @property
    def server(self) -> Server | None:
        return self.kind.server if self.kind else None

    @property
    def port(self) -> int:
        if self.elsewhere:
            return self.elsewhere[1]
        return self.server.port if self.server else 0

    def runs(self, name: str) -> bool:
        """Whether it is a server of that kind, in any version."""
        return self.kind is not None and self.kind.name == name


def server_nodes(kind: Kind, number: int) -> tuple[NodeSpec, ...]:
    """So many servers of a kind: r1, r2 ..."""
    letter = "n" if kind.name[0] in "cs" else kind.name[0]  # clients and storages have those
    return tuple(NodeSpec(f"{letter}{n}", Role.SERVER, kind) for n in range(1, number + 1))


def nodes_for(kind: Kind, there: Sequence[Address]) -> tuple[NodeSpec, ...]:
    """For servers of a kind that are there already."""
    nodes = server_nodes(kind, len(there))
    return tuple(replace(n, elsewhere=at) for n, at in zip(nodes, there, strict=True))


def kinds_to_start(nodes: Iterable[NodeSpec]) -> tuple[Kind, ...]:
    """The kinds of their servers, each once, sorted; without those that are there already."""
    return tuple(sorted({node.kind for node in nodes if node.kind and not node.elsewhere}))


def in_words(servers: Iterable[NodeSpec]) -> str:
    """As in "3 etcd", "1 postgres, 1 pgbouncer", "redis at 10.0.0.7:6379"."""
    servers = tuple(servers)
    numbers = Counter(server.kind for server in servers if not server.elsewhere)
    there = [f"{s.kind} at {address_words(s.elsewhere)}" for s in servers if s.elsewhere]
    return ", ".join([*(f"{number} {kind}" for kind, number in numbers.items()), *there])


def address_words(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(eq=False)
class Node:
    """A running node: its network lasts as long as the run, its processes come and go.

    `keepers` are processes in its network that are not its own: they keep a container running.
    `data` is its data folder, a file system of its own, as the agent sees it.
    """

    spec: NodeSpec
    address: str
    network: int  # a file descriptor of its namespace
    keepers: frozenset[int] = frozenset()
    data: Path | None = None
    down: bool = field(default=False, init=False)  # ended on purpose, so not reported
    may_end: bool = field(default=False, init=False)  # an active fault may make it exit

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def role(self) -> Role:
        return self.spec.role

    def pids(self) -> list[int]:
        """All processes in its network that have not ended, forks included."""
        return pids_of([self])[self.name]

    def own_pids(self) -> list[int]:
        """Of its own program, and of what that has started."""
        return self.pids()

    @property
    def alive(self) -> bool:
        return bool(self.pids())

    def thread_states(self) -> list[str]:
        """The state of each thread, as in /proc/PID/stat: R runs, S sleeps, T is stopped ..."""
        return [state for pid in self.pids() for state in _thread_states(pid)]

    def signal(self, number: int) -> None:
        """Sends a signal to each of its processes; one forked meanwhile may be missed."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def ask_to_leave(self) -> None:
        """SIGTERM to its own program, which ends what it has started in turn."""
        pids = self.own_pids()
        started = {child for pid in pids for child in children_of(pid)}
        for pid in (pid for pid in pids if pid not in started):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def inside_network(self) -> AbstractContextManager[None]:
        """Enters its network for a `with` block: sockets created in it stay in that network."""
        return inside(self.network)


def pids_of(nodes: Iterable[Node]) -> dict[str, list[int]]:
    """The processes of several nodes, by name, with one listing of /proc."""
    found: dict[str, list[int]] = {node.name: [] for node in nodes}
    by_network = {_identity(node.network): node for node in nodes}
    for pid, network in _networks():
        node = by_network.get(network)
        if node is not None and pid not in node.keepers:
            found[node.name].append(pid)
    return found


def _identity(handle: int) -> tuple[int, int]:
    about = os.fstat(handle)
    return about.st_dev, about.st_ino


def _networks() -> Iterator[tuple[int, tuple[int, int]]]:
    """Each process with its network namespace; a zombie has none."""
    own = os.getpid()  # it enters networks now and then, but belongs to no node
    for entry in os.listdir(PROC):  # noqa: PTH208 - hundreds of names, many times a second
        if entry.isdigit() and (pid := int(entry)) != own:
            try:
                about = os.stat(f"/proc/{pid}/ns/net")  # noqa: PTH116
                yield pid, (about.st_dev, about.st_ino)
            except FileNotFoundError:
                yield from _network_of_the_rest(pid)
            except OSError:  # another user's process
                continue


def _network_of_the_rest(pid: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """The network of a process whose first thread has ended and others have not."""
    for task in _tasks(pid):
        with suppress(OSError):
            about = (task / "ns" / "net").stat()
            yield pid, (about.st_dev, about.st_ino)
            return


def has_ended(pid: int) -> bool:
    """Whether all its threads have ended (it may be a zombie), so its ports and files are free."""
    return not list(_thread_states(pid))


def children_of(pid: int) -> list[int]:
    """The ids of its child processes; empty if it has ended."""
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return []


def command_line_of(pid: int) -> bytes:
    """Its words, each with a NUL after it; empty if it has ended."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _thread_states(pid: int) -> Iterator[str]:
    for task in _tasks(pid):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in DEAD:
                yield state


def _tasks(pid: int) -> list[Path]:
    try:
        return list((PROC / str(pid) / "task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []
