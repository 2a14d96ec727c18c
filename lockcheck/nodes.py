"""A node: a name, an address, a process and a network namespace, whatever runs it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


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

    @property
    def alive(self) -> bool:
        return bool(states := self.thread_states()) and not set(states) <= {"Z", "X"}

    def thread_states(self) -> list[str]:
        """One letter a thread, as the kernel tells it: R runs, S sleeps, T is stopped ..."""
        states = []
        for stat in Path(f"/proc/{self.pid}/task").glob("*/stat"):
            with suppress(FileNotFoundError, ProcessLookupError):  # it ended while we looked
                states.append(stat.read_text().rpartition(")")[2].split()[0])
        return states
