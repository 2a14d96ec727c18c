"""What the two runtimes have in common: where nodes come from, and how they are left.

A runtime brings up the nodes of a plan and one agent beside them, and hands over the agent's
pipe. Everything that happens to the nodes afterwards goes through that pipe, so that nothing
above this line knows whether a node is a container or a process in a network namespace.
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
from lockcheck.nodes.node import NodeSpec
from lockcheck.servers.kind import Kind

OPEN_FILES, OPEN_FILES_OF_A_NODE = 64, 4  # more than it was ever seen to take

Say = Callable[[str], None]  # one line of progress for a person


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """`folder/nodes/NAME/` is where each node's files are when the cluster has been collected."""

    run_id: str
    nodes: tuple[NodeSpec, ...]
    folder: Path
    idle_clients: bool = False  # nothing runs on their nodes until somebody has something run there
    client_image: str = ""  # in `docker`, instead of lockcheck's own

    @property
    def nodes_folder(self) -> Path:
        return self.folder / NODES_FOLDER

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Of its servers, each once, in order."""
        return tuple(sorted({node.kind for node in self.nodes if node.kind}))


def allow_open_files(plan: ClusterPlan) -> None:
    """Before there is anything that could not be removed again for want of them."""
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
    """Nodes that run. Whoever got one must close it, on every way out."""

    agent: AgentLink
    versions: dict[str, str]  # of the servers, by kind

    @abstractmethod
    def enter_command(self, node: str) -> str:
        """The command with which a person looks around in a node (for `--keep`)."""

    @abstractmethod
    def collect(self) -> None:
        """Brings the nodes' files and logs into the plan's folder. Nodes may run or be dead."""

    @abstractmethod
    def close(self) -> None:
        """Ends everything that carries the run's id. May be called twice."""


class Runtime(ABC):
    name: ClassVar[str]

    @abstractmethod
    def why_not(self, servers: Iterable[Kind] = ()) -> str:
        """Why this host cannot run these kinds of server in it, with the cure; empty where it
        can. Without any: whether it can run at all."""

    @abstractmethod
    def start(self, plan: ClusterPlan, say: Say) -> Cluster:
        """Nodes and agent up and introduced to each other; servers may still be starting.

        Raises ClusterError, and leaves nothing behind then.
        """
