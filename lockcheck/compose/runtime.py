"""The interface of the two runtimes, which bring up clusters.

A runtime starts the nodes of a plan and one agent beside them, and returns the pipe to the agent,
through which all that happens to the nodes afterwards goes.
"""

from __future__ import annotations

import resource
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from lockcheck.agent.link import AgentLink
from lockcheck.errors import ClusterError
from lockcheck.nodes import NODES_FOLDER
from lockcheck.nodes.node import NodeSpec, kinds_to_start
from lockcheck.servers.base import Server, driver_versions
from lockcheck.servers.kind import Kind

OPEN_FILES, OPEN_FILES_OF_A_NODE = 64, 4  # more than any run was seen to take

Say = Callable[[str], None]  # one line of progress for a person


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """`collect` brings each node's files into `folder/nodes/NAME/`."""

    run_id: str
    nodes: tuple[NodeSpec, ...]
    folder: Path
    idle_clients: bool = False  # their nodes start without a program
    client_image: str = ""  # in `docker`, instead of lockcheck's own
    client_folder: str = ""  # of this host; in `docker` it is mounted into the clients' nodes
    packages: tuple[str, ...] = ()  # installed ones that add to lockcheck, and are used
    program_image: str = ""  # in `docker`: of a container beside each client's, for users' programs

    @property
    def nodes_folder(self) -> Path:
        return self.folder / NODES_FOLDER

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of the servers to start."""
        return kinds_to_start(self.nodes)


def allow_open_files(plan: ClusterPlan) -> None:
    """Raises the limit of open files for the plan's nodes, or else ClusterError."""
    wanted = OPEN_FILES + OPEN_FILES_OF_A_NODE * len(plan.nodes)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        nodes = len(plan.nodes)
        raise ClusterError(
            f"a run with {nodes} nodes takes {wanted} open files, and {hard} are allowed",
            cure=f"raise the limit: ulimit -n {max(1024, wanted)}",
        )
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Cluster(ABC):
    """Running nodes. The caller of `Runtime.start` must close it in any case."""

    agent: AgentLink
    versions: dict[str, str]  # of the servers, by kind

    @abstractmethod
    def enter_command(self, node: str) -> str:
        """The command that opens a shell in a node (for `--keep`)."""

    @abstractmethod
    def collect(self) -> None:
        """Copies the nodes' files and logs into the plan's folder; nodes may run or be dead."""

    @abstractmethod
    def close(self) -> None:
        """Ends and removes all that belongs to the run. May be called twice."""


class Runtime(ABC):
    name: ClassVar[str]

    @abstractmethod
    def why_not(self, servers: Iterable[Kind] = ()) -> str:
        """Why this host cannot run these kinds of server in this runtime, with the cure; empty if
        it can. Without any kinds: whether the runtime can be used at all."""

    def driver_versions(self, server: Server) -> dict[str, str]:
        """The versions of the server's client libraries, as its clients have them."""
        return driver_versions(server)

    @abstractmethod
    def start(self, plan: ClusterPlan, say: Say) -> Cluster:
        """Starts the nodes and the agent. If it raises ClusterError, nothing is left behind."""
