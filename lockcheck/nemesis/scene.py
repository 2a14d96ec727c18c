"""What an active fault can use of the run: its nodes, holders, fleet and links."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lockcheck.history import Event
from lockcheck.nemesis.base import Fleet, Plan
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.network.links import Links
from lockcheck.nodes.node import Node, Role


@dataclass(slots=True)
class Scene:
    nodes: Mapping[str, Node]
    fleet: Fleet
    plan: Plan
    holders: Holders
    links: Links
    now_ns: Callable[[], int] = time.monotonic_ns  # the history's clock
    record: Callable[[Event], None] = lambda _event: None  # adds a fact to the history
    struck: set[str] = field(default_factory=set)  # nodes struck by a fault not healed yet

    def names(self, *roles: Role) -> list[str]:
        return [name for name, node in self.nodes.items() if node.role in roles]

    def free(self, *roles: Role) -> list[str]:
        return [name for name in self.names(*roles) if self.is_free(name)]

    def a_client(self) -> Node:
        """A client's node: one that no fault has struck, if there is one."""
        clients = self.free(Role.CLIENT) or self.names(Role.CLIENT)
        return self.nodes[clients[0]]

    def is_free(self, name: str) -> bool:
        """Whether the node is up and no fault strikes it."""
        return name not in self.struck and not self.nodes[name].down
