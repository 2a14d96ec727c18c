"""A node: a name, an address, a process and a network namespace, whatever runs it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    SERVER = "server"  # of the lock under test
    STORAGE = "storage"  # what the lock protects; never faulted unless asked
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What a node is to be. `program` names an entry of `compose.programs`."""

    name: str
    role: Role
    program: str
    arguments: tuple[str, ...] = ()
    port: int | None = None  # where it answers when it is ready


@dataclass(frozen=True, slots=True)
class Node:
    """A node that runs. `pid` is its main process, as the run's agent sees it."""

    name: str
    role: Role
    address: str
    pid: int
